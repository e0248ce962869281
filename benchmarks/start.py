"""What starting costs: processor time and memory of each kind of process, of two trees in turn.

    python -m benchmarks start --before ../other-checkout

Processor time is that of the process and of all that it starts; memory is the largest resident set
of one of them. A server opens its ports and ends; a gradient process imports what it
runs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.kept import RESULTS
from embedding.bench.results import facts, hardware, keep

SERVER = """
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
with running_server(ServerConfig(min_count=1), dim=16):
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
        "server": [sys.executable, "-c", SERVER],
        "gradient process": [sys.executable, "-c", "import embedding.worker.process.gradient"],
    }


def measured(command: Sequence[str], tree: Path, folder: Path) -> tuple[float, float]:
    """Processor seconds, and MB of the largest process."""
    places = os.pathsep.join([str(tree), str(tree / "plugins")])
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        env=os.environ | {"PYTHONPATH": places},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def main(arguments: Sequence[str]) -> None:
    parser = ArgumentParser(prog="python -m benchmarks start", description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args(arguments)
    trees = {"before": given.before.resolve(), "now": Path(__file__).resolve().parents[1]}
    machine, random = hardware(), Random(1)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        words = [f"낱말{n}" for n in range(300)]
        lines = (" ".join(random.choices(words, k=12)) for _ in range(3_000))
        (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
        found: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for _ in range(given.rounds):
            for what, command in commands(folder).items():
                for name, tree in trees.items():
                    runs = found.setdefault(what, {}).setdefault(name, [])
                    runs.append(measured(command, tree, folder))
    table = ["| process | " + " | ".join(f"{n}, s | {n}, MB" for n in trees) + " |"]
    table.append("|---|" + "---|" * (2 * len(trees)))
    for what, sides in found.items():
        cells = []
        for runs in sides.values():
            seconds, megabytes = map(statistics.median, zip(*runs, strict=True))
            cells += [f"{seconds:.2f}", f"{megabytes:.0f}"]
        table.append(f"| {what} | " + " | ".join(cells) + " |")
    report = {**facts("start", ("numpy", "numba", "torch"), machine), "found": found}
    text = "# What starting costs\n\nMedians, both trees in turn.\n\n" + "\n".join(table) + "\n"
    print(text)
    print(keep(report, text, results=RESULTS))


if __name__ == "__main__":
    main(sys.argv[1:])
