"""Processes of nodes are forks of one that has their imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from waiting import until

TELLING = """
import gc, json, os, signal, sys
from embedding.worker.process.forking import adopt, forked, processes

def tell(end, environment):
    place = getattr(sys.modules.get("wave"), "__file__", "")
    early = "wave" in sys.modules and not gc.isenabled()
    adopt(environment)
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    end.send({"early": early, "blocked": blocked, "told": os.environ.get("TOLD"),
              "gone": "GONE" not in os.environ, "place": place,
              "safe": "PYTHONSAFEPATH" in os.environ, "collects": gc.isenabled()})

if __name__ == "__main__":
    context = processes(["wave:open"])
    open_here = signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    os.environ["TOLD"] = "later"
    os.environ.pop("GONE", None)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=tell, args=(theirs, dict(os.environ)))
    process.start()
    said = ours.recv()
    process.join(300)
    print(json.dumps({**said, "open": open_here, "method": context.get_start_method()}))
"""

ENDING = """
import sys, time
from embedding.worker.process.forking import processes
from embedding.kernel.processes import end_with_parent

def linger(end):
    end_with_parent()
    end.send(1)
    time.sleep(600)

if __name__ == "__main__":
    context = processes(["wave:open"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=linger, args=(theirs,))
    process.start()
    ours.recv()
    print(process.pid, flush=True)
    time.sleep(600)
"""


def started(code: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    file = folder / "starting.py"
    file.write_text(code, encoding="utf-8")
    here = folder / "here"
    here.mkdir()
    (here / "wave.py").write_text("", encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(file)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=here,
        env={**os.environ, **environment},
    )


def told(code: str, folder: Path, **environment: str) -> dict[str, Any]:
    with started(code, folder, **environment) as process:
        try:
            said, _ = process.communicate(timeout=300)
        finally:
            process.kill()
    found: dict[str, Any] = json.loads(said)
    return found


def test_a_process_has_its_imports_and_the_environment_of_now(tmp_path: Path) -> None:
    said = told(TELLING, tmp_path, GONE="1", TOLD="earlier")
    assert not said.pop("place").startswith(str(tmp_path)), "not what lies in the working folder"
    assert said == {
        "safe": False,
        "early": True,
        "blocked": True,
        "told": "later",
        "gone": True,
        "collects": True,
        "open": True,
        "method": "forkserver",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whose child a process is")
def test_all_of_them_end_when_who_asked_for_them_is_killed(tmp_path: Path) -> None:
    with started(ENDING, tmp_path) as process:
        try:
            assert process.stdout is not None
            child = psutil.Process(int(process.stdout.readline()))
            server = child.parent()
            assert server is not None
            assert server.pid != process.pid
        finally:
            os.kill(process.pid, signal.SIGKILL)
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


def test_where_nothing_can_be_written_they_are_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    from embedding.worker.process import forking

    def nowhere() -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(forking.tempfile, "gettempdir", nowhere)
    assert forking.processes(["wave:open"]).get_start_method() == "spawn"
