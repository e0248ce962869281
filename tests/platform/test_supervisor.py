"""A real supervisord: services start, restart, and end with every orphan."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from embedding.kernel.errors import PlatformError
from embedding.platform.processes import end_all, marked
from embedding.platform.services import Service
from embedding.platform.supervisor import Supervisor, call_supervisor
from waiting import until

# Leaves a grandchild in a session of its own behind, as Airflow's scheduler does, and writes over
# its environment, as Airflow's API server does.
ORPHANING = (
    "import subprocess, sys, time; "
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], "
    "start_new_session=True); "
    "from setproctitle import setproctitle; setproctitle('retitled'); time.sleep(300)"
)


def service(name: str, code: str, ready: str = "") -> Service:
    return Service(name, (sys.executable, "-c", code), ready=ready, stop_seconds=2)


@pytest.fixture
def supervisor(tmp_path: Path):
    found = Supervisor(tmp_path / "home", tmp_path / "home" / "logs")
    yield found
    found.stop()


def test_orphans_end_with_the_platform(supervisor: Supervisor) -> None:
    supervisor.write([service("parent", ORPHANING)])
    supervisor.start()
    until(lambda: len(marked(supervisor.home)) >= 3)
    mine = {p.pid for p in marked(supervisor.home)}
    assert supervisor.stop() >= 3
    # What was killed is gone once its parent, or init, has taken note.
    until(lambda: not any(psutil.pid_exists(pid) for pid in mine))
    assert supervisor.states() == {}


# Ends well once it has seen what the other leaves at its own end.
PATIENT = """
import pathlib, signal, sys, time
mine, others = map(pathlib.Path, sys.argv[1:])
def end(*_):
    while not others.exists():
        time.sleep(0.05)
    mine.touch()
    sys.exit()
signal.signal(signal.SIGTERM, end)
mine.with_suffix(".begun").touch()
time.sleep(600)
"""


def test_services_of_airflow_end_beside_the_others(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, begun = tmp_path / "ended", tmp_path / "begun"
    begun.touch()
    seen = {
        "airflow-scheduler": (tmp_path / "airflow", begun),
        "server": (ended, tmp_path / "airflow"),  # supervisord would end it first, by its name
    }
    supervisor.write(
        [
            Service(name, (sys.executable, "-c", PATIENT, *map(str, files)), stop_seconds=600)
            for name, files in seen.items()
        ]
    )
    supervisor.start()
    until(lambda: all(mine.with_suffix(".begun").exists() for mine, _ in seen.values()))
    before: list[bool] = []
    monkeypatch.setattr(
        "embedding.platform.supervisor.end_all",
        lambda home: before.append(ended.exists()) or end_all(home),
    )
    supervisor.stop()
    assert before == [True], "it was waited for alone, until supervisord's time was over"


def test_orphans_are_found_after_the_supervisor_was_killed(supervisor: Supervisor) -> None:
    supervisor.write([service("parent", ORPHANING)])
    supervisor.start()
    until(lambda: len(marked(supervisor.home)) >= 3)
    os.kill(supervisor.pid() or 0, signal.SIGKILL)
    until(lambda: supervisor.pid() is None)
    assert len(marked(supervisor.home)) >= 2
    end_all(supervisor.home, patience=20)
    assert marked(supervisor.home) == []


def test_a_service_that_dies_is_started_again(supervisor: Supervisor) -> None:
    supervisor.write([service("short", "import time; time.sleep(300)")])
    supervisor.start()
    until(lambda: supervisor.states().get("short") == "RUNNING")
    first = supervisor.pids()["short"]
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.pids().get("short", first) != first)


def test_a_service_is_restarted_whether_it_runs_or_not(supervisor: Supervisor) -> None:
    supervisor.write([service("short", "import time; time.sleep(300)")])
    supervisor.start()
    until(lambda: supervisor.states().get("short") == "RUNNING")
    first = supervisor.pids()["short"]
    supervisor.restart("short")
    assert supervisor.states() == {"short": "RUNNING"}
    assert supervisor.pids()["short"] != first
    call_supervisor(supervisor.socket, "stopProcess", "short")
    assert supervisor.pids() == {}
    supervisor.restart("short")
    assert supervisor.states() == {"short": "RUNNING"}


def test_no_certificate_is_read_for_a_socket(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor.write([service("short", "import time; time.sleep(300)")])
    supervisor.start()
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    assert call_supervisor(supervisor.socket, "getPID") == supervisor.pid()


def test_a_service_that_cannot_start_shows_the_end_of_its_log(supervisor: Supervisor) -> None:
    broken = service("broken", "raise SystemExit('no such thing')", ready="http://127.0.0.1:9/")
    supervisor.write([broken])
    supervisor.start()
    with pytest.raises(PlatformError, match="no such thing"):
        supervisor.wait_ready([broken], timeout=120)


def test_the_configuration_is_private(supervisor: Supervisor) -> None:
    supervisor.write([service("x", "pass")])
    for path in (supervisor.configuration, supervisor.services):
        assert path.stat().st_mode & 0o077 == 0


# What environments hold in practice, and what a configuration file cannot say.
HARD = {
    "YEORON_CRAWL__ALLOW_PRIVATE_HOSTS": '["board:80"]',
    "QUOTED": """it's "so", 100%, %(here)s; #1""",
    "INJECTED": 'x"\ncommand=/bin/false\n',
    "TAILED": "\\",
}


def shows(names: list[str], to: Path) -> str:
    """Code of a service that writes values of its environment to a file."""
    return (
        f"import json, os, pathlib, time; found = {{n: os.environ.get(n) for n in {names!r}}}; "
        f"draft = pathlib.Path({str(to) + '.new'!r}); draft.write_text(json.dumps(found)); "
        f"draft.rename({str(to)!r}); time.sleep(300)"
    )


@pytest.mark.parametrize("where", ["home", "50% of 집", "deep/" * 20 + "home"])
def test_every_environment_reaches_a_service_as_it_is(tmp_path: Path, where: str) -> None:
    """Also below a folder whose name holds what supervisord expands, or is long for a socket."""
    found = Supervisor(tmp_path / where, tmp_path / where / "logs")
    told = tmp_path / "told.json"
    try:
        found.write([replace(service("one", shows(list(HARD), told)), environment=HARD)])
        found.start()
        until(told.exists)
        assert json.loads(told.read_text()) == HARD
        until(lambda: found.states() == {"one": "RUNNING"})
        # No other user can know it before, or make it first.
        assert found.socket.parent.stat().st_mode & 0o077 == 0
        assert found.socket.parent == found.run or len(found.socket.parent.name) > len("yeoron-")
    finally:
        found.stop()
    assert not found.socket.exists()
