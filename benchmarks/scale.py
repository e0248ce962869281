"""A thousand nodes in simulated time: where leases, frontier, polling, clocks and windows saturate.

    python -m benchmarks scale
    python -m benchmarks scale --nodes 100 --sources 1000 --part windows

The state machines are the real ones; decisions queue in simulated time and take what this machine
takes for them. `use` above 1 means that a part falls behind for ever; `saturates_at_nodes` is the
number of nodes at which it would, all else in proportion. Text, wire and rows are left out: what
they cost shows `yeoron bench` on the machine itself.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import scaleparts
from benchmarks.kept import RESULTS
from benchmarks.scaleparts import Load, Station
from yeoron_bench.results import facts, keep

POLICIES = ("bsp", "backup", "ssp", "asp", "averaging", "auto")
PARTS: dict[str, Callable[[Load], Station]] = {
    "leases": scaleparts.leases,
    "frontier": scaleparts.frontier,
    "polling": scaleparts.polling,
    "polling-alone": scaleparts.polling_alone,
    **{f"clocks-{each}": partial(scaleparts.clocks, policy=each) for each in POLICIES},
    "windows": scaleparts.windows,
}


def bench_scale(
    load: Load, parts: Sequence[str] = tuple(PARTS), *, results: Path = RESULTS
) -> dict[str, Any]:
    """Each part by itself, and a dated result."""
    stations = {}
    for name in parts:
        stations[name] = PARTS[name](load)
        print(stations[name].row(), stations[name].notes, flush=True)
    report = {
        **facts("scale", ("numpy", "sqlalchemy")),
        "setting": asdict(load),
        "parts": [each.row() for each in stations.values()],
        "found": [
            {"part": each.name, "figure": name, "value": value}
            for each in stations.values()
            for name, value in each.notes.items()
        ],
    }
    keep(report, results=results)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for field in fields(Load):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=type(field.default), default=field.default)
    parser.add_argument("--part", action="append", choices=tuple(PARTS), help="only these")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = vars(parser.parse_args(arguments))
    results, parts = given.pop("results"), given.pop("part")
    bench_scale(Load(**given), parts or tuple(PARTS), results=results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
