"""The words whose meaning moved, judged against words of like frequency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from embedding.trends import noise
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Material, signs
from embedding.trends.pair import Pair
from embedding.trends.rows import TrendRow
from embedding.trends.shift import ESTIMATORS, SCALES, shift
from embedding.trends.writer import RowWriter, top


@dataclass(frozen=True)
class Moved:
    """The ranking, the noise floor it was judged by, and how many words were compared."""

    rows: tuple[TrendRow, ...] = ()
    floor: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    compared: int = 0


def rank_moved(material: Material, pair: Pair, writer: RowWriter, config: TrendsConfig) -> Moved:
    """Rank by robust z of the shift; only words that are frequent enough on both sides."""
    in_window = material.now.take(pair.words, material.now.sources)[0].sum(axis=1)
    often = (in_window >= config.min_count) & (pair.seen_before >= config.min_count)
    rows = np.flatnonzero(often & ~signs(pair.words, config)).astype(np.int64)
    if len(rows) == 0 or len(pair) < 3:
        return Moved()
    values = shift(pair, rows, config)
    exposure = noise.exposure(pair.seen_before[rows], in_window[rows])
    scale = SCALES[config.estimator]
    ranked = noise.judge(scale.forward(values.astype(np.float64)), exposure, config.band_words)
    words = [pair.words[at] for at in rows]
    best = top(np.arange(len(rows)), ranked.z, words, config.rows)
    every = {name: shift(pair, rows[best], config, name) for name in usable(pair)}
    expected = scale.inverse(ranked.floor.at(exposure)[0])
    found: list[dict[str, object]] = [
        {
            "score": float(ranked.z[at]),
            "z": float(ranked.z[at]),
            "p": float(ranked.p[at]),
            "q": float(ranked.q[at]),
            "significant": bool(ranked.q[at] <= config.false_discovery),
            "shift": float(values[at]),
            "expected": float(expected[at]),
            "figures": {name: float(column[i]) for name, column in every.items()},
        }
        for i, at in enumerate(best)
    ]
    return Moved(
        rows=tuple(writer.rows([words[at] for at in best], found)),
        floor=ranked.floor.to_dict(),
        compared=len(rows),
    )


def usable(pair: Pair) -> list[str]:
    """Names of the estimators that can compare this pair, sorted."""
    same = pair.before.shape[1] == pair.after.shape[1]
    return [name for name in sorted(ESTIMATORS) if same or name != "procrustes"]
