"""A control host and two hosts that joined, each a network namespace with a home of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from embedding.platform.processes import end_all, marked
from embedding.simweb.config import SimwebConfig
from embedding.simweb.corpus import write_corpus
from embedding.simweb.resolve import resolve_corpus
from waiting import until

ROOT = Path(__file__).parents[2]
WORLD = Path(__file__).with_name("hostworld.py")
NETWORK = "198.51.100"
CONTROL = f"{NETWORK}.1"


def refused_namespaces() -> str | None:
    """Why hosts cannot be played here; None where they can."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and the program ip"
    probe = f"yeoron-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", probe], capture_output=True)
    return None if done.returncode == 0 else f"ip netns add: {done.stderr.strip()}"


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif((reason := refused_namespaces()) is not None, reason=str(reason)),
]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass(frozen=True)
class Host:
    """A namespace, with a home and settings of its own."""

    name: str
    address: str
    folder: Path

    @property
    def settings(self) -> Path:
        return self.folder / "yeoron.toml"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def start(self) -> None:
        ip("netns", "add", self.name)
        ip("link", "add", f"{self.name}x", "type", "veth", "peer", "name", f"{self.name}y")
        ip("link", "set", f"{self.name}x", "netns", self.name)
        ip("link", "set", f"{self.name}y", "master", f"yb{os.getpid()}")
        self.cable("up")
        for command in (
            ("link", "set", "lo", "up"),
            ("link", "set", f"{self.name}x", "up"),
            ("addr", "add", f"{self.address}/24", "dev", f"{self.name}x"),
        ):
            ip("netns", "exec", self.name, "ip", *command)

    def cable(self, state: str) -> None:
        ip("link", "set", f"{self.name}y", state)

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        own = ("YEORON_", "AIRFLOW")
        given = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        done = subprocess.run(
            ["ip", "netns", "exec", self.name, sys.executable, *command],
            cwd=ROOT,
            env=given,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def ask(self, question: str) -> Any:
        out = self.run(str(WORLD), question, str(self.settings)).stdout
        return json.loads(out.splitlines()[-1]) if out else None

    def yeoron(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ("-m", "embedding.cli", "--settings", str(self.settings), *arguments)
        return self.run(*command, check=check)

    def end(self) -> None:
        end_all(self.home)
        with suppress(subprocess.CalledProcessError):
            ip("netns", "del", self.name)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[tuple[Host, Host, Host]]:
    bridge = f"yb{os.getpid()}"
    names = ("control", "first", "second")
    hosts = []
    for i, name in enumerate(names, start=1):
        folder = tmp_path / name
        folder.mkdir()
        host = Host(f"y{os.getpid()}{i}", f"{NETWORK}.{i}", folder)
        sections = ["[hosts]\nworkers = 1\n"]
        if name == "control":
            sections = [
                f'[hosts]\naddress = "{CONTROL}"\n[cluster]\nnodes = 1\n',
                f'[crawl]\nfrontier = "sqlite:///{tmp_path}/frontier.db"\n',
                # What is learnt is remembered soon.
                "[server]\ncheckpoint_every_s = 2\n",
            ]
        paths = f'[paths]\nhome = "{host.home}"\nsources = "{tmp_path}/sources.toml"\n'
        host.settings.write_text(paths + "".join(sections), encoding="utf-8")
        hosts.append(host)
    source(tmp_path, "before", "2021-01-03")
    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("link", "set", bridge, "up")
        for host in hosts:
            host.start()
        yield hosts[0], hosts[1], hosts[2]
    finally:
        for host in reversed(hosts):
            host.end()
        with suppress(subprocess.CalledProcessError):
            ip("link", "del", bridge)


def source(folder: Path, name: str, last: str) -> int:
    """One more source in the file of sources; how many documents it has."""
    corpus = resolve_corpus(
        SimwebConfig(corpus="generated", last_day=last, seed=len(name))  # type: ignore[arg-type]
    )
    documents = write_corpus(corpus, folder / f"{name}.jsonl")
    with (folder / "sources.toml").open("a", encoding="utf-8") as file:
        file.write(
            f'[[source]]\nname = "{name}"\nkind = "replayed"\npath = "{folder}/{name}.jsonl"\n'
            f'group = "{name}"\nlanguage = "ko"\nevery = 5\n'
        )
    return documents


def test_a_host_joins_is_cut_off_and_dies(world: tuple[Host, Host, Host], tmp_path: Path) -> None:
    control, *others = world
    control.run(str(WORLD), "start", str(control.settings))
    for host in others:
        file = host.folder / "join.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(control.ask("joining")))
        host.yeoron("up", "--join", str(file))
        # Its home is known by then, so that the file is needed no more.
        again = host.yeoron("up", "--join", str(file), check=False)
        assert again.returncode == 2
        assert "has joined already" in again.stderr
    until(lambda: len(control.ask("workers")) == 2, "the workers did not come", 300)

    control.run(str(WORLD), "attach", str(control.settings))

    def documents(name: str) -> int:
        return int(control.ask("status")["sources"].get(name, {}).get("documents", 0))

    def learnt(name: str) -> bool:
        return documents(name) > 0 and not waiting(name)

    def waiting(name: str) -> bool:
        before = documents(name)
        time.sleep(3)
        return documents(name) != before

    until(lambda: learnt("before"), lambda: control.ask("status"), 600)
    first = documents("before")
    at = host_of_the_node(control, others)

    at.cable("down")
    source(tmp_path, "meanwhile", "2021-01-02")
    control.run(str(WORLD), "publish", str(control.settings))
    time.sleep(10)
    assert documents("meanwhile") == 0, "nobody can have pushed"
    at.cable("up")
    until(lambda: learnt("meanwhile"), lambda: control.ask("status"), 600)
    # Dask gave the node to the other host where the cut was longer than it waits.
    at = host_of_the_node(control, others)

    for process in marked(at.home):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    source(tmp_path, "afterwards", "2021-01-04")
    control.run(str(WORLD), "publish", str(control.settings))
    until(lambda: learnt("afterwards"), lambda: control.ask("status"), 600)
    assert host_of_the_node(control, others) is not at
    assert documents("before") == first, "nothing is learnt twice"


def host_of_the_node(control: Host, others: list[Host]) -> Host:
    workers = control.ask("workers")
    running = [worker for worker, keys in workers.items() if "yeoron-node-0" in keys]
    (found,) = [host for host in others if any(f"//{host.address}:" in one for one in running)]
    return found
