"""Shards of rows against shards of columns: bytes a token, speed and loss, by dimension.

    python -m benchmarks columns english.txt.xz --words 500000

Each side is one `yeoron train` as a process of its own, with one node, the same text and settings.
Sides of one dimension are run in turn, so that other load meets them alike. Bytes are those between
the node on one side and primary and shards on the other, both ways, and are the same on any
network. Processor time is that of all processes, the starting of Dask and Python included, which is
the same for every side.
"""

from __future__ import annotations

import os
import statistics
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from benchmarks.topology import cpu_seconds
from yeoron_bench.results import ended, facts, keep_and_print
from yeoron_bench.train import Setting, call, prepared, warm_up

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch", "distributed")
DIMS = (100, 300, 600)
SHARDS = (1, 2, 4)
SPLITS = ("rows", "columns")
Run = dict[str, Any]
Side = tuple[int, str, int]
"""Dimension, split, shards."""


def run_side(side: Side, corpus: Path, setting: Setting, seed: int) -> Run:
    dim, split, shards = side
    load, cpu = os.getloadavg()[0], cpu_seconds()
    options = [*replace(setting, dim=dim).options(), f"--shards={shards}", f"--split={split}"]
    trained, _ = call("embedding.cli", "train", str(corpus), *options, f"--seed={seed}", "--json")
    names = ("tokens_trained", "loss", "words_per_second", "train_seconds", "bytes_sent_per_token")
    return {
        **{name: trained[name] for name in names},
        "cpu_us_per_token": (cpu_seconds() - cpu) / trained["tokens_trained"] * 1e6,
        "load_1min": load,
    }


def summary(runs: dict[Side, list[Run]]) -> list[dict[str, Any]]:
    """Medians by side."""
    names = ("bytes_sent_per_token", "words_per_second", "cpu_us_per_token", "loss")
    return [
        {
            "dim": dim,
            "split": split,
            "shards": shards,
            **{name: statistics.median(run[name] for run in several) for name in names},
        }
        for (dim, split, shards), several in runs.items()
    ]


def bench_columns(
    corpus: Path,
    *,
    dims: Sequence[int] = DIMS,
    shards: Sequence[int] = SHARDS,
    words: int | None = 500_000,
    repeats: int = 1,
    sample: float = 1e-4,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure; write a dated JSON file and a table beside it, and print the table."""
    setting = Setting(sample=sample)
    sides = [(dim, split, count) for dim in dims for count in shards for split in SPLITS]
    report: dict[str, Any] = {
        **facts("columns", PACKAGES),
        "corpus": {"file": corpus.name, "words": words},
        "config": {name: value for name, value in asdict(setting).items() if name != "dim"},
        "repeats": repeats,
    }
    runs: dict[Side, list[Run]] = {side: [] for side in sides}
    with prepared(corpus, words) as plain:
        warm_up(plain, setting)
        for repeat in range(repeats):
            for side in sides:
                runs[side].append(run_side(side, plain, setting, repeat + 1))
                last = runs[side][-1]
                print(*side, f"{last['bytes_sent_per_token']:,.0f} bytes a token", flush=True)
    report["summary"] = summary(runs)
    report["runs"] = [{"side": list(side), "runs": several} for side, several in runs.items()]
    keep_and_print(report, results=results)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--dim", type=int, action="append", help=f"unless given: {DIMS}")
    parser.add_argument("--shards", type=int, action="append", help=f"unless given: {SHARDS}")
    parser.add_argument("--words", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--sample", type=float, default=1e-4)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_columns(
            given.corpus,
            dims=given.dim or DIMS,
            shards=given.shards or SHARDS,
            words=given.words,
            repeats=given.repeats,
            sample=given.sample,
            results=given.results,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
