"""The words that were born, rose or fell in a window, with their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

import numpy as np

from embedding.trends.births import births
from embedding.trends.bursts import bursts
from embedding.trends.config import TrendsConfig
from embedding.trends.copies import repetition_notes
from embedding.trends.emergence import Judged, emergence
from embedding.trends.expressions import explained, incomparable, taken
from embedding.trends.frequency import Frequency, add
from embedding.trends.material import ReportInput, signs
from embedding.trends.online import in_one_window, limits_of
from embedding.trends.rows import Note, TrendRow
from embedding.trends.writer import RowWriter, top


@dataclass(frozen=True)
class FrequencyRankings:
    """Three rankings; `compared` words were tested, `new` words were born.

    notes  on text that repeats itself
    """

    born: tuple[TrendRow, ...]
    risen: tuple[TrendRow, ...]
    fallen: tuple[TrendRow, ...]
    compared: int
    new: int
    pooled: bool
    notes: tuple[Note, ...] = ()


def rank_arrivals(
    material: ReportInput,
    once: ReportInput,
    writer: RowWriter,
    config: TrendsConfig,
    limits: Mapping[str, float] | None = None,
) -> FrequencyRankings:
    """Rank words by the change of their document frequency; new words are ranked apart.

    One document of each author, and of copies of a text, is tested (`copies.py`); rows show all.

    once    `material` with the documents that are tested
    limits  q up to which words are called, by family (`online.FAMILIES`); None: in one window
    """
    limits = limits or limits_of(in_one_window(config.false_discovery))
    baseline = add(once.past[-config.baseline_windows :])
    words = _rankable(once, baseline, config)
    rise = emergence(once.now, baseline, words, config.prior_documents)
    new = births(once, config, rise.inflation)
    fresh = set(new.words)
    old = np.array([word not in fresh for word in words], dtype=bool)
    sure = [new.words[at] for at in np.flatnonzero(new.q <= limits["born"])]
    usually = baseline.usual_rate(words, once.now)
    # A row shows rates of all documents: it is ranked where they go the way that its z says.
    whole = add(material.past[-config.baseline_windows :])
    rate, shown = material.now.rate(words), whole.usual_rate(words, material.now)
    up = old & (rate > shown) & ~explained(words, once.now, usually, sure, once)
    down = old & (rate < shown) & ~taken(words, once.now, usually, once)
    own = ~explained(new.words, once.now, np.zeros(len(new.words)), sure, once)

    rankings: list[_Ranking] = []
    for judged, of, chosen in (
        (new, new.words, own),
        (rise, words, up & (rise.z > 0)),
        (rise, words, down & (rise.z < 0)),
    ):
        best = top(np.flatnonzero(chosen), np.abs(judged.score), of, config.rows)
        rankings.append(_Ranking(judged, tuple(of[at] for at in best), best))
    weights = _bursts({word for ranking in rankings for word in ranking.words}, once)
    rates = dict(zip(words, shown.tolist(), strict=True))

    def rows(ranking: _Ranking) -> tuple[TrendRow, ...]:
        judged, values = ranking.judged, []
        for word, at in zip(ranking.words, ranking.best, strict=True):
            burst = {"burst": weights[word] * float(judged.spread[at])}
            measures = {"rate_usual": rates[word]} if judged is rise else {}
            limit = limits["emergence" if judged is rise else "born"]
            values.append(_values(judged, at, limit) | burst | measures)
        return tuple(writer.rows(ranking.words, values)) if values else ()

    born, risen, fallen = map(rows, rankings)
    notes = tuple(repetition_notes(material, once.now, baseline))
    return FrequencyRankings(born, risen, fallen, len(words), len(new.words), rise.pooled, notes)


@dataclass(frozen=True)
class _Ranking:
    """The best words of one ranking, and where they stand among those judged."""

    judged: Judged
    words: tuple[str, ...]
    best: Sequence[int]


def _bursts(words: Set[str], material: ReportInput) -> dict[str, float]:
    """Weight of the burst of each word that reaches into this window; 0 without one.

    The windows are read one after the other: all at once would not fit into memory.
    """
    names = sorted(words)
    read, held = [], []
    for part in chain(material.past, (material.now,)):
        read.append(int(part.total_documents.sum()))
        held.append(part.documents_of(names))
    total = np.array(read, dtype=np.int64)
    series = np.stack(held, axis=1).astype(np.int64)
    last = len(read) - 1
    return {
        word: sum(b.weight for b in bursts(one, total) if b.last == last)
        for word, one in zip(names, series, strict=True)
    }


def _values(rise: Judged, at: int, limit: float) -> dict[str, object]:
    return {
        "score": abs(float(rise.score[at])),
        "z": float(rise.z[at]),
        "p": float(rise.p[at]),
        "q": float(rise.q[at]),
        "significant": bool(rise.q[at] <= limit),
        "log_odds": float(rise.log_odds[at]),
        "spread": float(rise.spread[at]),
    }


def _rankable(material: ReportInput, baseline: Frequency, config: TrendsConfig) -> list[str]:
    """Words that enough documents of either window hold, and that were counted in both."""
    now = material.now
    words = list(dict.fromkeys([*now.words, *baseline.words]))
    held = now.documents_of(words)
    held = np.maximum(held, baseline.documents_of(words))
    keep = (held >= config.min_documents) & ~signs(words, config)
    keep &= ~incomparable(words, material, config.baseline_windows, config.min_documents)
    return [words[at] for at in np.flatnonzero(keep)]
