"""What starting costs: processor time and memory of each kind of process, of two trees in turn.

    python -m benchmarks start --before ../other-checkout

Processor time is that of the process and of all that it starts; memory is the largest resident set
of one of them. A server opens its ports and ends, with and without shards; a gradient process
imports what it runs. A process that does not end is killed with all that it started.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from benchmarks.kept import RESULTS
from embedding.kernel.errors import PlatformError
from yeoron_bench.results import ended, facts, hardware, keep

LIMIT_S = 600.0
SERVER = """
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
with running_server(ServerConfig(min_count=1, shards={shards}), dim=16):
    pass
"""
MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def commands(folder: Path) -> dict[str, list[str]]:
    yeoron = [sys.executable, "-m", "embedding.cli"]
    return {
        "yeoron --version": [*yeoron, "--version"],
        "yeoron train, 36,000 words": [*yeoron, "train", str(folder / "text.txt"), "--json"],
        "server": [sys.executable, "-c", SERVER.format(shards=1)],
        "server with two shards": [sys.executable, "-c", SERVER.format(shards=2)],
        "gradient process": [sys.executable, "-c", "import embedding.worker.process.gradient"],
    }


def measured(
    command: Sequence[str], tree: Path, folder: Path, limit_s: float = LIMIT_S
) -> tuple[float, float]:
    """Processor seconds, and MB of the largest process.

    PlatformError where it fails, or where it or what it started still runs after `limit_s`.
    """
    paths = os.pathsep.join([str(tree), str(tree / "plugins"), str(tree / "neighbours")])
    child = subprocess.Popen(
        [sys.executable, "-c", MEASURED, *command],
        env=os.environ | {"PYTHONPATH": paths},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # The pipes end when the last process ends that was started: none is left behind unseen.
    try:
        figures, errors = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        raise PlatformError(f"{tree.name}: it had not ended after {limit_s:.0f} s.") from error
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if child.returncode:
        last = errors.strip().rpartition("\n")[2] or f"exit code {child.returncode}"
        raise PlatformError(f"{tree.name}: it failed ({last}).")
    seconds, megabytes = map(float, figures.split())
    return seconds, megabytes


def bench_start(before: Path, rounds: int) -> None:
    """Measure both trees in turn; write a dated result file, print it."""
    trees = {"before": before.resolve(), "now": Path(__file__).resolve().parents[1]}
    machine, random = hardware(), Random(1)
    times: dict[str, dict[str, list[tuple[float, float]]]] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        words = [f"낱말{n}" for n in range(300)]
        lines = (" ".join(random.choices(words, k=12)) for _ in range(3_000))
        (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
        for _ in range(rounds):
            for what, command in commands(folder).items():
                for name, tree in trees.items():
                    print(f"{what}, {name}", file=sys.stderr, flush=True)
                    runs = times.setdefault(what, {}).setdefault(name, [])
                    runs.append(measured(command, tree, folder))
    report = {**facts("start", ("numpy", "numba", "torch"), machine), "found": times}
    text = table(times, tuple(trees))
    print(text)
    print(keep(report, text, results=RESULTS))


def table(times: dict[str, dict[str, list[tuple[float, float]]]], trees: Sequence[str]) -> str:
    """Medians by process and tree."""
    lines = ["# What starting costs", "", "Medians, both trees in turn.", ""]
    lines.append("| process | " + " | ".join(f"{n}, s | {n}, MB" for n in trees) + " |")
    lines.append("|---|" + "---|" * (2 * len(trees)))
    for what, sides in times.items():
        cells = []
        for runs in sides.values():
            seconds, megabytes = map(statistics.median, zip(*runs, strict=True))
            cells += [f"{seconds:.2f}", f"{megabytes:.0f}"]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args(arguments)
    return ended(lambda: bench_start(given.before, given.rounds))


if __name__ == "__main__":
    sys.exit(main())
