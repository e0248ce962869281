"""Network namespaces of one machine as hosts, each with a home, settings and files of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from embedding.platform.processes import end_all, marked
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import write_corpus
from yeoron_simweb.resolve import resolve_corpus

ROOT = Path(__file__).parents[1]
WORLD = Path(__file__).with_name("platform") / "hostworld.py"
NETWORK = "198.51.100"


def refused_namespaces() -> str | None:
    """Why hosts cannot be played here; None where they can."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and the program ip"
    probe = f"yeoron-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", probe], capture_output=True)
    return None if done.returncode == 0 else f"ip netns add: {done.stderr.strip()}"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass(frozen=True)
class Bridge:
    """What the cables of hosts are plugged into."""

    name: str

    def start(self) -> None:
        ip("link", "add", self.name, "type", "bridge")
        ip("link", "set", self.name, "up")

    def end(self) -> None:
        with suppress(subprocess.CalledProcessError):
            ip("link", "del", self.name)


@dataclass(frozen=True)
class Host:
    """A namespace, with a home and settings of its own.

    unseen       folders of other hosts, which its processes find empty
    environment  variables of its processes
    answering    the process on it that answers `ask`, once it was asked something
    """

    name: str
    address: str
    folder: Path
    bridge: Bridge
    unseen: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    answering: list[subprocess.Popen[str]] = field(default_factory=list)

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
        ip("link", "set", f"{self.name}y", "master", self.bridge.name)
        self.cable("up")
        for command in (
            ("link", "set", "lo", "up"),
            ("link", "set", f"{self.name}x", "up"),
            ("addr", "add", f"{self.address}/24", "dev", f"{self.name}x"),
        ):
            ip("netns", "exec", self.name, "ip", *command)

    def cable(self, state: str) -> None:
        ip("link", "set", f"{self.name}y", state)

    def inside(self, *command: str) -> list[str]:
        """The command, as one that runs on this host."""
        # `ip netns exec` gives each command mounts of its own.
        hide = "".join(f"mount -t tmpfs none '{path}' && " for path in self.unseen)
        return ["ip", "netns", "exec", self.name, "sh", "-c", f'{hide}exec "$@"', "sh", *command]

    def variables(self) -> dict[str, str]:
        own = ("YEORON_", "AIRFLOW")
        given = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        return {**given, **self.environment}

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.inside(sys.executable, *command),
            cwd=ROOT,
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def ask(self, question: str, *arguments: str) -> Any:
        """What platform/hostworld.py answers on this host."""
        if not self.answering:
            self.answering.append(
                subprocess.Popen(
                    self.inside(sys.executable, str(WORLD), str(self.settings)),
                    cwd=ROOT,
                    env=self.variables(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        (process,) = self.answering
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([question, *arguments]) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"{question}: no answer; what is wrong is in the output of this test"
        return json.loads(answer)

    def yeoron(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ("-m", "embedding.cli", "--settings", str(self.settings), *arguments)
        return self.run(*command, check=check)

    def die(self) -> None:
        """Every process of it is killed at once."""
        for process in marked(self.home):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)

    def end(self) -> None:
        for process in self.answering:
            with process:
                process.kill()
        end_all(self.home)
        with suppress(subprocess.CalledProcessError):
            ip("netns", "del", self.name)


def join(host: Host, file: dict[str, Any], *, check: bool = True) -> Any:
    """`yeoron up` on a host with what `invite` wrote on another."""
    path = host.folder / "join.json"
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(file))
    return host.yeoron("up", "--join", str(path), check=check)


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
