"""Crawling and learning for a long time with faults: do memory, descriptors and files stay flat?

    python -m benchmarks soak --minutes 120

The services of `yeoron up` without Airflow and MLflow read the simulated web, whose corpus of
`--months` months plays to the end of the run. In turn: a process of a node is killed, the server is
killed, a whole Dask worker is killed, the disk of the checkpoints is full, and the frontier's
database is locked as one that restarts. Hostile pages are read all the time. The corpus
is denser than the nodes can read, and waits for them: they work at full speed. Every few seconds
each role's resident memory and open files are written down, and the files of the home. `slopes` are
of straight lines through what came after the first quarter, in parts of the mean, an hour.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import httpx
import numpy as np
import psutil

from benchmarks.kept import RESULTS
from benchmarks.supervised import new_home, supervised
from embedding.cluster import attach_pool
from embedding.platform.processes import marked
from embedding.platform.services import Service, dask_services, server_service
from embedding.platform.supervisor import Supervisor
from embedding.settings import Settings
from embedding.worker.process.forking import forked
from yeoron_bench.results import facts, free_port, keep
from yeoron_demo.demo_settings import simweb_service
from yeoron_simweb.sources import sources_toml

_DISK_MB = 256
_AWAY_S = 10.0
"""How long the disk is full, and the database locked."""
_HOSTILE = """
[[source]]
name = "hostile"
kind = "page"
url = "{base}/fault/"
links = "/fault/"
group = "news"
language = "ko"
every = 5.0
"""


@dataclass(frozen=True)
class Setting:
    """minutes to run; nodes of the pool; a fault each `fault_s`; a sample each `sample_s`.

    `documents_per_day` of the corpus, in which `months` are the whole run: more than the nodes can
    read keep them at full speed, as the simulated web waits for who reads it. `max_words`,
    `max_candidates` and `rare_words` of the server are small enough to be reached in the first
    quarter: what is asked is whether a server that is full grows.
    """

    minutes: float = 120.0
    nodes: int = 2
    months: float = 5.0
    documents_per_day: int = 500
    fault_s: float = 40.0
    sample_s: float = 5.0
    window: str = "day"
    max_words: int = 12_000
    max_candidates: int = 30_000
    rare_words: int = 3_000
    tokenizer: str = "whitespace"
    seed: int = 1


def write_settings(home: Path, setting: Setting) -> tuple[Path, int]:
    """A settings file with free ports and everything under `home`; the simulated web's port."""
    simweb = free_port()
    base = f"http://127.0.0.1:{simweb}"
    sources = home / "sources.toml"
    text = sources_toml(base, every=2.0, rendered=False) + _HOSTILE.format(base=base)
    sources.write_text(text, encoding="utf-8")
    path = home / "yeoron.toml"
    path.write_text(
        f"""
[paths]
home = {json.dumps(str(home))}
sources = {json.dumps(str(sources))}
[ports]
dask = {free_port()}
dask_dashboard = {free_port()}
simweb = {simweb}
[cluster]
nodes = {setting.nodes}
[crawl]
user_agent = "Yeoron-soak/0.1 (simulated web on this machine)"
allow_private_hosts = ["127.0.0.1:{simweb}"]
rate = 200.0
extract_processes = 0
replay_clock_url = "{base}/clock.json"
[server]
port = {free_port()}
http_port = {free_port()}
window = {json.dumps(setting.window)}
cut = "watermark"
source_idle_s = 12.0
max_words = {setting.max_words}
max_candidates = {setting.max_candidates}
rare_words = {setting.rare_words}
checkpoint_every_s = 5.0
device = "cpu"
state_dir = {json.dumps(str(home / "disk" / "checkpoints"))}
[model]
dim = 50
[text]
tokenizer = {json.dumps(setting.tokenizer)}
[node]
restarts = 1000000
[exchange]
connect_timeout_s = 180.0
""",
        encoding="utf-8",
    )
    return path, simweb


@contextmanager
def disk(home: Path) -> Iterator[bool]:
    """`disk` in `home` as a small file system of its own, where one can be mounted."""
    folder = home / "disk"
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m,mode=0700", "tmpfs", str(folder)]
    try:
        mounted = (
            subprocess.run(mount, capture_output=True, timeout=60, check=False).returncode == 0
        )
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], timeout=60, check=False)


@contextmanager
def platform(setting: Setting) -> Iterator[tuple[Settings, Supervisor, bool]]:
    """Server, Dask, the simulated web and the pool; all of it goes afterwards."""
    pace = 60 * setting.minutes / setting.months
    played = (
        *("--corpus", "generated", "--seconds-per-month", str(pace), "--crawl-delay", "0"),
        *("--documents-per-day", str(setting.documents_per_day), "--max-backlog", "100"),
    )

    def services(settings: Settings) -> list[Service]:
        shown = simweb_service(settings, *played)
        return [shown, server_service(settings), *dask_services(settings)]

    with new_home("soak") as home, disk(home) as mounted:
        file, port = write_settings(home, setting)
        with supervised(file, services) as (settings, supervisor):
            attach_pool(settings)
            control = f"http://127.0.0.1:{port}/control/start"
            httpx.post(control, timeout=10, trust_env=False).raise_for_status()
            yield settings, supervisor, mounted


class Faults:
    """What goes wrong, in turn; `done` says when (seconds of the run) and what."""

    def __init__(
        self, settings: Settings, supervisor: Supervisor, mounted: bool, setting: Setting
    ) -> None:
        self.done: list[tuple[float, str]] = []
        self._settings = settings
        self._supervisor = supervisor
        self._dice = random.Random(setting.seed)
        self._nodes = setting.nodes
        self._turns: list[tuple[str, Callable[[], bool]]] = [
            ("a process of a node", self._kill_process),
            ("the server", lambda: self._kill("server")),
            ("the database is locked", self._lock_database),
            ("a worker", lambda: self._kill(self._worker())),
        ]
        if mounted:
            self._turns.append(("the disk is full", self._fill_disk))

    def next(self, at: float) -> None:
        """One fault; some last for a while."""
        what, fault = self._turns[len(self.done) % len(self._turns)]
        done = False
        with suppress(LookupError, ValueError, psutil.Error, OSError, sqlite3.Error):
            done = fault()
        self.done.append((round(at, 1), what if done else f"not done: {what}"))

    def _worker(self) -> str:
        return f"dask-worker-{self._dice.randrange(self._nodes)}"

    def _process(self, name: str) -> psutil.Process:
        return psutil.Process(self._supervisor.pids()[name])

    def _kill(self, name: str) -> bool:
        self._process(name).kill()
        return True

    def _kill_process(self) -> bool:
        children = self._process(self._worker()).children(recursive=True)
        pair = [process for process in children if forked(process)]
        if not pair:
            return False
        self._dice.choice(pair).kill()
        return True

    def _lock_database(self) -> bool:
        path = self._settings.database_address("frontier").removeprefix("sqlite:///")
        connection = sqlite3.connect(path, timeout=30, isolation_level=None)
        try:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(_AWAY_S)
            connection.execute("ROLLBACK")
        finally:
            connection.close()
        return True

    def _fill_disk(self) -> bool:
        filler = self._settings.paths.home / "disk" / "filler"
        try:
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(1 << 16))
            time.sleep(_AWAY_S)
        finally:
            filler.unlink(missing_ok=True)
        return True


def role(process: psutil.Process) -> str:
    """What a process of the platform is, by its command line."""
    if forked(process):
        return "node"
    line = " ".join(process.cmdline()).replace("_", " ")
    for mark, name in (
        ("embedding.cli serve", "server"),
        ("embedding.cli simweb", "simweb"),
        ("dask scheduler", "dask-scheduler"),
        ("dask worker", "dask-worker"),
        ("multiprocessing.forkserver", "fork server"),
        ("multiprocessing.resource tracker", "tracker"),
        ("pool worker", "text"),
        ("extract worker", "extract"),
        ("supervisord", "supervisord"),
    ):
        if mark in line:
            return name
    return "other"


def sample(settings: Settings) -> dict[str, Any]:
    """Memory and descriptors by role; files of the home, and tokens learnt."""
    roles: dict[str, dict[str, float]] = {}
    for process in marked(settings.paths.home):
        with suppress(psutil.Error, OSError):
            memory = process.memory_full_info()
            usage = roles.setdefault(role(process), {"processes": 0, "mb": 0.0, "descriptors": 0})
            usage["processes"] += 1
            usage["mb"] += getattr(memory, "pss", memory.rss) / 2**20
            usage["descriptors"] += process.num_fds()
    names = sizes = 0
    for folder, _, files in os.walk(settings.paths.home):
        names += len(files)
        for name in files:
            with suppress(OSError):
                sizes += (Path(folder) / name).stat().st_size
    return {
        "roles": roles,
        "mb": round(sum(usage["mb"] for usage in roles.values()), 1),
        "descriptors": sum(usage["descriptors"] for usage in roles.values()),
        "processes": sum(usage["processes"] for usage in roles.values()),
        "files": names,
        "files_mb": round(sizes / 2**20, 1),
        **learnt(settings),
    }


def learnt(settings: Settings) -> dict[str, float]:
    """Nothing while the server is away."""
    address = settings.server_status_url
    try:
        with urlopen(address, timeout=3.0) as answer:
            status = json.load(answer)
    except (OSError, ValueError):
        return {}
    return {
        "documents": status["documents"],
        "snapshots": len(status["snapshots"]),
        "vocabulary": status["vocabulary"],
        "candidates": status["candidates"],
        "usage": status["usage"]["held"] + status["usage"]["before"],
    }


def slopes(samples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each figure after the first quarter: its mean, and what it grows by an hour."""
    late = samples[len(samples) // 4 :]
    lines = []
    figures = {
        name: [sample[name] for sample in late]
        for name in ("mb", "descriptors", "files", "files_mb")
    }
    roles = sorted({name for sample in late for name in sample["roles"]})
    for each in roles:
        figures[f"mb of {each}"] = [
            sample["roles"].get(each, {}).get("mb", np.nan) for sample in late
        ]
    hours = np.array([sample["at_s"] for sample in late]) / 3600
    for name, values in figures.items():
        given = np.asarray(values, dtype=np.float64)
        finite = np.isfinite(given)
        if finite.sum() < 3:
            continue
        slope = float(np.polyfit(hours[finite], given[finite], 1)[0])
        mean = float(given[finite].mean())
        lines.append(
            {
                "figure": name,
                "mean": round(mean, 1),
                "an_hour": round(slope, 1),
                "percent_an_hour": round(100 * slope / mean, 1) if mean else None,
            }
        )
    return lines


def bench_soak(setting: Setting, *, results: Path = RESULTS) -> dict[str, Any]:
    """The run, and a dated result."""
    report = facts("soak", ("numpy", "torch", "distributed", "pyarrow"))
    samples = []
    with platform(setting) as (settings, supervisor, mounted):
        faults = Faults(settings, supervisor, mounted, setting)
        began = time.monotonic()
        fault_at = setting.fault_s
        while (at := time.monotonic() - began) < 60 * setting.minutes:
            samples.append({"at_s": round(at, 1), **sample(settings)})
            if at >= fault_at:
                faults.next(at)
                fault_at = time.monotonic() - began + setting.fault_s
            time.sleep(setting.sample_s)
        # What was killed last is back before the end is judged.
        deadline = time.monotonic() + 60
        while not (end := learnt(settings)) and time.monotonic() < deadline:
            time.sleep(1)
        states = supervisor.states()
    report |= {
        "setting": asdict(setting),
        "disk_could_be_filled": mounted,
        "faults": [{"at_s": at, "what": what} for at, what in faults.done],
        "end": {**end, "services_running": sum(each == "RUNNING" for each in states.values())},
        "slopes": slopes(samples),
        "samples": [{k: v for k, v in row.items() if k != "roles"} for row in samples],
    }
    keep(report, results=results)
    print(json.dumps({name: report[name] for name in ("faults", "end", "slopes")}, indent=1))
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for field in fields(Setting):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=type(field.default), default=field.default)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = vars(parser.parse_args(arguments))
    results = given.pop("results")
    bench_soak(Setting(**given), results=results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
