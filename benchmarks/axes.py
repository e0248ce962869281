"""Words placed between two lists of words that were drawn at random: how often on a side?

    python -m benchmarks axes STORE --drawn 400

In the last window of a store two lists of `--words` words are drawn, and a word to place
(`trends/axis.py`). Such lists mean nothing, so a 95 % interval should miss 0 in one case of twenty.
Beside it stands how often the interval would miss 0 if it covered the texts alone.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import RESULTS
from embedding.snapshots.store import SnapshotStore
from embedding.trends.axis import ALL, AxisCache, axis_history
from embedding.trends.config import TrendsConfig
from embedding.trends.likeness import pooled
from yeoron_bench.results import facts, keep

_MENTIONS = 100
"""Least mentions in the window of a word that is drawn."""


@dataclass
class Counted:
    """Of `placed` words, on a side by the texts alone, and by the whole interval."""

    words: int
    placed: int = 0
    by_texts: int = 0
    by_both: int = 0


def drawn(store: SnapshotStore, words: int, times: int, seed: int = 0) -> Counted:
    """Place so many words between lists of `words` words each."""
    snapshot = store.open()
    usage = snapshot.usage
    if usage is None:
        raise SystemExit(f"{snapshot.id} does not say how words were used")
    mentions = np.bincount(usage.rows, weights=usage.mentions, minlength=len(snapshot.words))
    names = [snapshot.words[row] for row in np.flatnonzero(mentions >= _MENTIONS).tolist()]
    rows, means = pooled(usage)
    dice, counted = np.random.default_rng(seed), Counted(words)
    config = TrendsConfig().model_copy(update={"history_windows": 1})
    for _ in range(times):
        word, *rest = dice.choice(names, 2 * words + 1, replace=False).tolist()
        cache: AxisCache = {}
        lists = rest[:words], rest[words:]
        points = axis_history(store, word, *lists, config, cache=cache).points
        (axis,) = cache.values()
        for point in points:
            if axis is None or point.source != ALL or point.low is None or point.high is None:
                continue
            vector = means[np.searchsorted(rows, snapshot.index(word) or 0)]
            whole = (point.high - point.low) / 2
            texts = max(whole**2 - (axis.half_width(vector) or 0.0) ** 2, 0.0) ** 0.5
            counted.placed += 1
            counted.by_both += point.low > 0.0 or point.high < 0.0
            counted.by_texts += abs(point.position) > texts
    return counted


def bench_axes(store: str, times: int, *, results: Path = RESULTS) -> dict[str, Any]:
    """For lists of several sizes, and a dated result."""
    snapshots = SnapshotStore(store)
    report = facts("axes", ("yeoron", "numpy"))
    report["store"] = Path(store).name
    report["lists"] = [vars(drawn(snapshots, words, times)) for words in (2, 3, 5, 8)]
    keep(report, results=results)
    for listed in report["lists"]:
        shares = [listed[name] / listed["placed"] for name in ("by_texts", "by_both")]
        print(
            f"{listed['words']} words a side: {shares[0]:.1%} by the texts alone, {shares[1]:.1%}"
        )
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("store", help="folder of snapshots with usage")
    parser.add_argument("--drawn", type=int, default=400, help="words to place")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    bench_axes(given.store, given.drawn, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
