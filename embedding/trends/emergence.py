"""Which words came up: log-odds of document frequencies with an informative Dirichlet prior.

Monroe, Colaresi and Quinn (2008), eqs. 16, 20 and 22, for each source by itself; sources are
combined by inverse variance, so a change in the mix of sources is not taken for a change of
words, and what one source alone does ranks lower.

Where documents get longer, more of them hold any word. So the change of a usual word of like
frequency is taken off: the running median over BAND words, of those that are used at both times. A
word that rose less than usual words did has not fallen, though: a change that would turn its sign
counts as none.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray
from embedding.trends.frequency import Frequency
from embedding.trends.significance import TestArray, benjamini_hochberg, robust_scale, two_sided

_WordMask = npt.NDArray[np.bool_]

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
    """Rise of each word from the baseline to the window; p is two-sided.

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


def usual_change(change: TestArray, share: TestArray, known: _WordMask) -> TestArray:
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


def source_spread(held: TestArray, documents: TestArray) -> TestArray:
    """exp(entropy of the word's rates over sources) / number of sources: float64 [n] in (0, 1].

    Rates, not counts: a large source does not outvote the small ones.
    """
    live = documents > 0
    if not live.any():
        return np.ones(len(held))
    rates = held[:, live] / documents[live]
    total = rates.sum(axis=1, keepdims=True)
    shares = np.divide(rates, total, out=np.zeros_like(rates), where=total > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    spread: TestArray = np.exp(-(shares * logs).sum(axis=1)) / int(live.sum())
    return spread
