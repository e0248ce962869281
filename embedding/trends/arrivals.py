"""The words that were born, rose or fell in a window, with their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

import numpy as np

from embedding.kernel.records import IntArray
from embedding.trends.births import births
from embedding.trends.config import TrendsConfig
from embedding.trends.copies import repetition_notes
from embedding.trends.emergence import Judged, emergence
from embedding.trends.expressions import explained, incomparable, taken
from embedding.trends.frequency import Frequency, add
from embedding.trends.material import ReportInput, signs
from embedding.trends.online import in_one_window, limits_of
from embedding.trends.rows import Note, TrendRow
from embedding.trends.significance import TestArray
from embedding.trends.writer import RowWriter, top

SCALING = 2.0
"""s: how many times as many documents hold the word in a burst."""
GAMMA = 1.0
"""γ: what it costs to enter a burst, in units of ln T."""


@dataclass(frozen=True)
class Burst:
    """Windows first to last (numbers, both included) in which a word burst, and its weight."""

    first: int
    last: int
    weight: float


def bursts(held: IntArray, read: IntArray) -> list[Burst]:
    """Bursts of one word, the earliest first: two states of a stream of batches (Kleinberg 2002,
    section 4).

    In window t a share p of all d_t documents holds the word in the ordinary state, and a share s·p
    in a burst. The states q_t that cost least are found by dynamic programming (Viterbi):

        Σ_t −ln Binomial(r_t; d_t, p_q) + γ ln T · [a burst begins at t]

    and the weight of a burst is what the ordinary state would have cost more in it.

    held, read  int64 [T]: documents that hold the word, and all documents, of each window
    """
    live = np.flatnonzero(read > 0)
    if len(live) < 2 or not held.sum():
        return []
    r, d = held[live].astype(np.float64), read[live].astype(np.float64)
    usual = r.sum() / d.sum()
    rates = np.clip([usual, min(SCALING * usual, 0.9999)], 1e-12, 0.9999)
    costs = -(r[:, None] * np.log(rates) + (d - r)[:, None] * np.log1p(-rates))
    states = _cheapest(costs, GAMMA * float(np.log(len(live))))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], states, [0]])))
    gain = costs[:, 0] - costs[:, 1]
    return [
        Burst(int(live[first]), int(live[end - 1]), float(gain[first:end].sum()))
        for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    ]


def _cheapest(costs: TestArray, entering: float) -> IntArray:
    """int64 [T]: states 0 or 1 that cost least in all; a word begins in the ordinary state."""
    total = np.array([costs[0, 0], costs[0, 1] + entering])
    came = np.zeros((len(costs), 2), dtype=np.int64)
    for at in range(1, len(costs)):
        step = total[:, None] + np.array([[0.0, entering], [0.0, 0.0]])
        came[at] = np.argmin(step, axis=0)
        total = step.min(axis=0) + costs[at]
    states = np.zeros(len(costs), dtype=np.int64)
    states[-1] = int(np.argmin(total))
    for at in range(len(costs) - 1, 0, -1):
        states[at - 1] = came[at, states[at]]
    return states


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
