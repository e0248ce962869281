"""The words that were born, rose or fell in a window, with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.trends.births import births
from embedding.trends.bursts import bursts
from embedding.trends.config import TrendsConfig
from embedding.trends.emergence import Judged, emergence
from embedding.trends.frequency import Frequency
from embedding.trends.material import Mask, Material, signs
from embedding.trends.rows import TrendRow
from embedding.trends.writer import RowWriter, top


@dataclass(frozen=True)
class Arrivals:
    """Three rankings; `compared` words were tested, `new` words were born."""

    born: tuple[TrendRow, ...]
    risen: tuple[TrendRow, ...]
    fallen: tuple[TrendRow, ...]
    compared: int
    new: int
    pooled: bool


def rank_arrivals(
    material: Material, baseline: Frequency, writer: RowWriter, config: TrendsConfig
) -> Arrivals:
    """Rank words by the change of their document frequency; those born stand by themselves."""
    words = _rankable(material.now, baseline, config)
    rise = emergence(material.now, baseline, words, config.prior_documents)
    new = births(material, config, rise.inflation)
    fresh = set(new.words)
    old = np.array([word not in fresh for word in words], dtype=bool)

    def ranking(judged: Judged, of: Sequence[str], chosen: Mask) -> tuple[TrendRow, ...]:
        best = top(np.flatnonzero(chosen), np.abs(judged.score), of, config.rows)
        weights = _bursts([of[at] for at in best], material)
        values = [
            _values(judged, at, config) | {"burst": weight * float(judged.spread[at])}
            for at, weight in zip(best, weights, strict=True)
        ]
        if judged is rise:
            usual = baseline.usual_rate([of[at] for at in best], material.now)
            values = [v | {"rate_usual": float(u)} for v, u in zip(values, usual, strict=True)]
        return tuple(writer.rows([of[at] for at in best], values)) if best else ()

    return Arrivals(
        born=ranking(new, new.words, np.ones(len(new.words), dtype=bool)),
        risen=ranking(rise, words, old & (rise.z > 0)),
        fallen=ranking(rise, words, old & (rise.z < 0)),
        compared=len(words),
        new=len(new.words),
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


def _values(rise: Judged, at: int, config: TrendsConfig) -> dict[str, object]:
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
