"""The words that were born, rose or fell in a window, with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.trends.bursts import bursts
from embedding.trends.config import TrendsConfig
from embedding.trends.emergence import Emergence, emergence
from embedding.trends.frequency import Frequency
from embedding.trends.material import Mask, Material, signs
from embedding.trends.rows import TrendRow
from embedding.trends.writer import RowWriter, top


@dataclass(frozen=True)
class Arrivals:
    """Three rankings; `compared` words were tested, `new` of them were seen for the first time."""

    born: tuple[TrendRow, ...]
    risen: tuple[TrendRow, ...]
    fallen: tuple[TrendRow, ...]
    compared: int
    new: int
    pooled: bool


def rank_arrivals(
    material: Material, baseline: Frequency, writer: RowWriter, config: TrendsConfig
) -> Arrivals:
    """Rank words by the change of their document frequency against the baseline."""
    words = _rankable(material.now, baseline, config)
    rise = emergence(material.now, baseline, words, config.prior_documents)
    unseen = _unseen(words, material)
    new = unseen & _supported(words, material.now, config)

    def ranking(chosen: Mask) -> tuple[TrendRow, ...]:
        best = top(np.flatnonzero(chosen), np.abs(rise.score), words, config.rows)
        weights = _bursts([words[at] for at in best], material)
        values = [
            _values(rise, at, config) | {"burst": weight * float(rise.spread[at])}
            for at, weight in zip(best, weights, strict=True)
        ]
        return tuple(writer.rows([words[at] for at in best], values)) if best else ()

    return Arrivals(
        born=ranking(new),
        risen=ranking(~unseen & (rise.z > 0)),
        fallen=ranking(~unseen & (rise.z < 0)),
        compared=len(words),
        new=int(new.sum()),
        pooled=rise.pooled,
    )


def _bursts(words: Sequence[str], material: Material) -> list[float]:
    """Weight of the burst of each word that reaches into this window; 0 without one."""
    windows = (*material.past, material.now)
    read = np.array([int(part.total_documents.sum()) for part in windows], dtype=np.int64)
    held = [part.take(words, part.sources)[1].sum(axis=1) for part in windows]
    series = np.stack(held, axis=1).astype(np.int64)
    last = len(windows) - 1
    return [sum(b.weight for b in bursts(one, read) if b.last == last) for one in series]


def _values(rise: Emergence, at: int, config: TrendsConfig) -> dict[str, object]:
    return {
        "score": abs(float(rise.score[at])),
        "z": float(rise.z[at]),
        "p": float(rise.p[at]),
        "q": float(rise.q[at]),
        "significant": bool(rise.q[at] <= config.false_discovery),
        "log_odds": float(rise.log_odds[at]),
        "spread": float(rise.spread[at]),
    }


def _rankable(now: Frequency, baseline: Frequency, config: TrendsConfig) -> list[str]:
    """Words that enough documents of either window hold."""
    words = list(dict.fromkeys([*now.words, *baseline.words]))
    held = now.take(words, now.sources)[1].sum(axis=1)
    held = np.maximum(held, baseline.take(words, baseline.sources)[1].sum(axis=1))
    keep = (held >= config.min_documents) & ~signs(words, config)
    return [words[at] for at in np.flatnonzero(keep)]


def _unseen(words: Sequence[str], material: Material) -> Mask:
    """Which words no earlier window counted and no earlier snapshot knew.

    Sources run ahead of the watermark, so a snapshot may hold words of the window after it. Its
    running count tells them apart: one that the later windows account for was read ahead.
    """
    later = material.now.take(words, material.now.sources)[0].sum(axis=1)
    known = np.zeros(len(words), dtype=bool)
    for snapshot, part in zip(reversed(material.earlier), reversed(material.past), strict=True):
        rows = snapshot.rows(words)
        held = np.where(rows >= 0, snapshot.counts[np.maximum(rows, 0)], 0)
        counted = part.take(words, part.sources)[0].sum(axis=1)
        known |= (counted > 0) | (held > later)
        later = later + counted
    return ~known


def _supported(words: Sequence[str], now: Frequency, config: TrendsConfig) -> Mask:
    """Words that enough documents and sources of this window hold."""
    held = now.take(words, now.sources)[1]
    enough: Mask = held.sum(axis=1) >= config.min_documents
    spread: Mask = (held > 0).sum(axis=1) >= config.min_sources
    return enough & spread
