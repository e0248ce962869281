"""The words that were born, rose or fell in a window, with their evidence.

A word is born that is read for the first time of late, and by now in enough documents. A word
seldom comes all at once: it is first read here and there. It is born in the window in which as many
documents as the settings ask for hold it, all windows together, if the first of them lies at most
`born_windows` windows back, and behind a window that did not use it. It is ranked by how much more
this window uses it than all windows before: of the documents that hold it, how many would be in
this window by chance (the binomial test that conditions on their number; Przyborowski and Wilenski
1940). Any word might have been born, and those that were are chosen by what this window held of
them: so q is that of a test of every word of the model, where the others found nothing. Mentions
that came before a word had its row are counted among the b, as far as they are known, and so are
documents that held a phrase before it was read as one word; those of the window itself are counted
with it (`expressions.py`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, starmap

import numpy as np

from embedding.kernel.records import IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.config import TrendsConfig
from embedding.trends.copies import repetition_notes
from embedding.trends.evidence import RowWriter, top
from embedding.trends.expressions import explained, incomparable, taken, unlisted
from embedding.trends.frequency import Frequency, add
from embedding.trends.material import Mask, ReportInput, signs
from embedding.trends.online import in_one_window, limits_of
from embedding.trends.rows import Note, TrendRow
from embedding.trends.significance import (
    TestArray,
    benjamini_hochberg,
    binomial_log_sf,
    normal_isf,
    normal_sf,
    robust_scale,
    two_sided,
)

_SMALLEST = -700.0
"""Natural log of the smallest p that is told from 0."""


ENOUGH_WORDS = 50
BAND = 151
"""Words of like frequency; their median change is the usual one."""
_PRIOR = 200.0
"""Strength of the Dirichlet prior of the log-odds, in documents."""
_USED = 5
"""Documents before and now of a word that says what is usual."""


@dataclass(frozen=True)
class Judged:
    """How much each of n words came up, float64 [n] each.

    log_odds  log-odds ratio (natural log; > 0: risen), without the change of a usual word
    z         of it, allowing for how much words fluctuate anyway
    p, q      of z, and Benjamini–Hochberg over all words judged
    spread    in (0, 1]: effective number of sources that hold the word, over all sources
    score     z · √spread: what the ranking is by
    """

    log_odds: TestArray
    z: TestArray
    p: TestArray
    q: TestArray
    spread: TestArray
    score: TestArray


@dataclass(frozen=True)
class Emergence(Judged):
    """Rise of each word from the baseline to the window, by the log-odds of document frequencies
    with an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008, eqs. 16, 20 and 22), for
    each source by itself; p is two-sided. Sources are combined by inverse variance, so a change in
    the mix of sources is not taken for a change of words, and what one source alone does ranks
    lower.

    Where documents get longer, more of them hold any word. So the change of a usual word of like
    frequency is taken off: the running median over BAND words, of those that are used at both
    times. A word that rose less than usual words did has not fallen, though: a change that would
    turn its sign counts as none.

    inflation  ≥ 1: robust standard deviation of all z; words always fluctuate more than
               sampling alone would make them (empirical null, Efron 2004); 1 for fewer than
               50 words, where it cannot be seen
    pooled     True when no source was read in both, so all sources were taken together
    """

    inflation: float
    pooled: bool


def emergence(
    now: Frequency, before: Frequency, words: Sequence[str], prior_documents: float = _PRIOR
) -> Emergence:
    """Compare the documents that hold each of `words` in two windows."""
    sources = tuple(sorted({*now.sources, *before.sources}))
    y1, y0 = now.take(words, sources)[1], before.take(words, sources)[1]
    n1, n0 = now.totals(sources)[1], before.totals(sources)[1]
    both = (n1 > 0) & (n0 > 0)
    spread = source_spread(y1.astype(float), n1.astype(float))
    pooled = not bool(both.any())
    if pooled:
        y1, y0 = y1.sum(axis=1, keepdims=True), y0.sum(axis=1, keepdims=True)
        n1, n0 = n1.sum(keepdims=True), n0.sum(keepdims=True)
    else:
        y1, y0, n1, n0 = y1[:, both], y0[:, both], n1[both], n0[both]
    share = (y1 + y0).sum(axis=1) / max(float((n1 + n0).sum()), 1.0)
    prior = np.clip(share * prior_documents, 0.01, None)[:, None]
    ratio, variance = log_odds(y1, n1, y0, n0, prior, prior_documents)
    weight = 1.0 / variance
    combined = (ratio * weight).sum(axis=1) / weight.sum(axis=1)
    both_times = np.minimum(y1.sum(axis=1), y0.sum(axis=1)) >= _USED
    beyond = combined - usual_change(combined, share, both_times)
    combined = np.where(beyond * combined > 0.0, beyond, 0.0)
    z = combined * np.sqrt(weight.sum(axis=1))
    inflation = max(robust_scale(z)[1], 1.0) if len(z) >= ENOUGH_WORDS else 1.0
    z = z / inflation
    p = two_sided(z)
    return Emergence(
        log_odds=combined,
        z=z,
        p=p,
        q=benjamini_hochberg(p),
        spread=spread,
        score=z * np.sqrt(spread),
        inflation=inflation,
        pooled=pooled,
    )


def usual_change(change: TestArray, share: TestArray, known: Mask) -> TestArray:
    """float64 [n]: how much words of like frequency changed; 0 where too few are known.

    change, share  float64 [n]: of the words, and the share of documents that hold them
    known          bool [n]: words used at both times
    """
    if int(known.sum()) < ENOUGH_WORDS:
        return np.zeros(len(change))
    order = np.flatnonzero(known)[np.argsort(share[known], kind="stable")]
    width = min(BAND, len(order) - 1 + len(order) % 2)
    half = width // 2
    # At both ends the band is that of the first, or last, words whose band is whole.
    middle = np.pad(running_median(change[order], width), half, mode="edge")
    usual: TestArray = np.interp(share, share[order], middle)
    return usual


def running_median(values: TestArray, width: int) -> TestArray:
    """float64 [n - width + 1]: the median of each `width` values in a row, an odd number."""
    sequence = values.tolist()
    window, half = sorted(sequence[:width]), width // 2
    medians = [window[half]]
    for first, after in zip(sequence, sequence[width:], strict=False):
        del window[bisect_left(window, first)]
        insort(window, after)
        medians.append(window[half])
    return np.array(medians)


def log_odds(
    y1: IntArray, n1: IntArray, y0: IntArray, n0: IntArray, prior: TestArray, prior_documents: float
) -> tuple[TestArray, TestArray]:
    """Log-odds ratio and its variance, [words, sources] each, both with the same prior.

    y are documents that hold the word, n all documents, prior the α of the word.
    """
    rest = np.maximum(prior_documents - prior, 0.01)
    held1, held0 = y1 + prior, y0 + prior
    other1, other0 = np.maximum(n1 - y1, 0) + rest, np.maximum(n0 - y0, 0) + rest
    ratio = np.log(held1 / other1) - np.log(held0 / other0)
    return ratio, 1.0 / held1 + 1.0 / held0 + 1.0 / other1 + 1.0 / other0


def source_spread(holding: TestArray, documents: TestArray) -> TestArray:
    """exp(entropy of the word's rates over sources) / number of sources: float64 [n] in (0, 1].

    Rates, not counts: a large source does not outvote the small ones.
    """
    live = documents > 0
    if not live.any():
        return np.ones(len(holding))
    rates = holding[:, live] / documents[live]
    total = rates.sum(axis=1, keepdims=True)
    shares = np.divide(rates, total, out=np.zeros_like(rates), where=total > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    spread: TestArray = np.exp(-(shares * logs).sum(axis=1)) / int(live.sum())
    return spread


@dataclass(frozen=True)
class Births(Judged):
    """The `words` born in a window, against all before; p is one-sided, q over the model."""

    words: tuple[str, ...]


def births(material: ReportInput, config: TrendsConfig, inflation: float) -> Births:
    """The words born in the window.

    inflation  by how much words fluctuate more than sampling alone would make them
    """
    now = material.now
    last = material.past[-1]
    often = last.documents_of(now.words) >= config.min_documents
    chosen = np.flatnonzero(~signs(now.words, config) & ~often)
    words, documents, before = _young([now.words[at] for at in chosen.tolist()], material, config)
    before = before + _waiting(words, material, config.born_windows)
    read, past = int(now.total_documents.sum()), sum(_read(material))
    share = read / max(read + past, 1)
    mentioned = documents.sum(axis=1) + unlisted(words, material).now
    chance = binomial_log_sf(mentioned, mentioned + before, share)
    z = normal_isf(np.exp(np.maximum(chance, _SMALLEST))) / inflation
    p = normal_sf(z)
    spread = source_spread(documents.astype(float), now.total_documents.astype(float))
    odds = np.log((mentioned + 0.5) / (read + 1.0)) - np.log((before + 0.5) / (past + 1.0))
    q = benjamini_hochberg(p, tests=material.snapshot.manifest.words)
    return Births(odds, z, p, q, spread, z * np.sqrt(spread), words)


def _young(
    words: list[str], material: ReportInput, config: TrendsConfig
) -> tuple[tuple[str, ...], IntArray, IntArray]:
    """The words born, documents int64 [n, S] of this window by source, and [n] of all before.

    A store may begin in the middle of a stream: a word that its oldest snapshot counts more often
    than all windows do was read before. The snapshots after that do not say so: sources run ahead
    of the watermark, and each may have been cut when much of later windows was read.
    """
    now = material.now
    documents_now = now.take(words, now.sources)[1]
    sources = {name: documents_now[:, at] > 0 for at, name in enumerate(now.sources)}
    later = now.counts_of(words)
    hidden = unlisted(words, material)
    before, first = hidden.before.copy(), hidden.first.copy()
    for at in range(len(material.past) - 1, -1, -1):
        snapshot, part = material.earlier[at], material.past[at]
        running = _running(snapshot, words)
        snapshot.release()
        counts, documents = part.take(words, part.sources)
        counted = counts.sum(axis=1)
        known = (counted == 0) & (running > later)
        first[counted > 0] = np.minimum(first[counted > 0], at)
        before += documents.sum(axis=1)
        for column, name in enumerate(part.sources):
            seen = documents[:, column] > 0
            sources[name] = sources.get(name, np.zeros(len(words), bool)) | seen
        later = later + counted
    total = documents_now.sum(axis=1) + hidden.now + before
    oldest = next((at for at, read in enumerate(_read(material)) if read), 0)
    fresh = (first == len(material.past)) | (first > oldest)
    spread = np.sum([*sources.values()], axis=0)
    born: Mask = (
        ~known
        & fresh
        & (first >= len(material.past) - config.born_windows)
        & (before - hidden.before * hidden.fresh < config.min_documents)
        & (total >= config.min_documents)
        & (spread >= config.min_sources)
    )
    at_born = np.flatnonzero(born)
    return tuple(words[at] for at in at_born.tolist()), documents_now[at_born], before[at_born]


def _waiting(words: Sequence[str], material: ReportInput, last: int) -> IntArray:
    """int64 [n]: mentions of words while they waited for a row, which no window lists.

    words  first listed in this window or one of the `last` before

    They are what the running count of the first snapshot that lists a word has above what windows
    count until then, and fewer than `server.min_count`: what is more was read ahead of the window.
    """
    server = material.snapshot.manifest.config.get("server")
    most = int(server.get("min_count", 1)) - 1 if isinstance(server, dict) else 0
    mentions, known = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    listed = np.zeros(len(words), bool)
    if not most:
        return mentions
    snapshots = (*material.earlier[-last:], material.snapshot)
    for snapshot, part in zip(snapshots, (*material.past[-last:], material.now), strict=True):
        counted = part.counts_of(words)
        running = _running(snapshot, words)
        known += counted
        first = ~listed & (counted > 0) & (running > 0)
        mentions[first] = (running - known)[first]
        listed |= first
    waited: IntArray = np.clip(mentions, 0, most)
    return waited


def _running(snapshot: Snapshot, words: Sequence[str]) -> IntArray:
    rows = snapshot.rows(words)
    counts: IntArray = np.where(rows >= 0, snapshot.counts[np.maximum(rows, 0)], 0)
    return counts


def _read(material: ReportInput) -> list[int]:
    return [sum(snapshot.manifest.documents.values()) for snapshot in material.earlier]


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


def bursts(holding: IntArray, read: IntArray) -> list[Burst]:
    """Bursts of one word, the earliest first: two states of a stream of batches (Kleinberg 2002,
    section 4).

    In window t a share p of all d_t documents holds the word in the ordinary state, and a share s·p
    in a burst. The states q_t that cost least are found by dynamic programming (Viterbi):

        Σ_t −ln Binomial(r_t; d_t, p_q) + γ ln T · [a burst begins at t]

    and the weight of a burst is what the ordinary state would have cost more in it.

    holding, read  int64 [T]: documents that hold the word, and all documents, of each window
    """
    live = np.flatnonzero(read > 0)
    if len(live) < 2 or not holding.sum():
        return []
    r, d = holding[live].astype(np.float64), read[live].astype(np.float64)
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
    for window in range(1, len(costs)):
        step = total[:, None] + np.array([[0.0, entering], [0.0, 0.0]])
        came[window] = np.argmin(step, axis=0)
        total = step.min(axis=0) + costs[window]
    states = np.zeros(len(costs), dtype=np.int64)
    states[-1] = int(np.argmin(total))
    for window in range(len(costs) - 1, 0, -1):
        states[window - 1] = came[window, states[window]]
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
    rise = emergence(once.now, baseline, words)
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

    rankings: list[tuple[Judged, tuple[str, ...], list[int]]] = []
    for judged, of, chosen in (
        (new, new.words, own),
        (rise, words, up & (rise.z > 0)),
        (rise, words, down & (rise.z < 0)),
    ):
        best = top(np.flatnonzero(chosen), np.abs(judged.score), of, config.rows)
        rankings.append((judged, tuple(of[at] for at in best), best))
    weights = _bursts({word for _, named, _ in rankings for word in named}, once)
    rates = dict(zip(words, shown.tolist(), strict=True))

    def rows(judged: Judged, named: tuple[str, ...], best: list[int]) -> tuple[TrendRow, ...]:
        values = []
        for word, at in zip(named, best, strict=True):
            burst = {"burst": weights[word] * float(judged.spread[at])}
            measures = {"rate_usual": rates[word]} if judged is rise else {}
            limit = limits["emergence" if judged is rise else "born"]
            values.append(_values(judged, at, limit) | burst | measures)
        return tuple(writer.rows(named, values)) if values else ()

    born, risen, fallen = starmap(rows, rankings)
    notes = tuple(repetition_notes(material, once.now, baseline))
    return FrequencyRankings(born, risen, fallen, len(words), len(new.words), rise.pooled, notes)


def _bursts(words: Set[str], material: ReportInput) -> dict[str, float]:
    """Weight of the burst of each word that reaches into this window; 0 without one.

    The windows are read one after the other: all at once would not fit into memory.
    """
    names = sorted(words)
    read, holding = [], []
    for part in chain(material.past, (material.now,)):
        read.append(int(part.total_documents.sum()))
        holding.append(part.documents_of(names))
    total = np.array(read, dtype=np.int64)
    series = np.stack(holding, axis=1).astype(np.int64)
    last = len(read) - 1
    return {
        word: sum(b.weight for b in bursts(counts, total) if b.last == last)
        for word, counts in zip(names, series, strict=True)
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
    documents = now.documents_of(words)
    documents = np.maximum(documents, baseline.documents_of(words))
    keep = (documents >= config.min_documents) & ~signs(words, config)
    keep &= ~incomparable(words, material, config.baseline_windows, config.min_documents)
    return [words[at] for at in np.flatnonzero(keep)]
