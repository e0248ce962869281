"""Words called a window late: a month's text was too little to be sure, that of two is enough.

A word that was just short in window t (`just_short`) is judged again with the next window: the
documents of t and t + 1 together against those before t, by the test of `permutation.py`. So each
word of t + 1 is tested twice, in t + 1 and late; both p of all words are one family (Benjamini and
Hochberg 1995). The late p of a word that was not just short is 1, which can only make p larger: the
error of a window stays what it is without late calls (ADR 40).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import IntArray
from embedding.trends.permutation import SAMPLED, Permuted, between_times
from embedding.trends.replicas import UsedWords
from embedding.trends.scoretable import WordScores
from embedding.trends.significance import TestArray

SHORT = 0.05
"""p in its window up to which a word that was not called was just short."""


def just_short(scores: WordScores) -> frozenset[str]:
    """The words of a window that were just short, by the figures of all that were compared."""
    table = scores.table
    p, called = table.column("p").to_numpy(), table.column("significant").to_numpy()
    return frozenset(table.column("word").take(np.flatnonzero((p <= SHORT) & ~called)).to_pylist())


@dataclass(frozen=True)
class LateTest:
    """Of n words some of which were just short in the window before.

    p      float64 [n]; 1 of a word that was not
    words  int64 [m], increasing, places of those in `found`, with all that were just short
    """

    p: TestArray
    words: IntArray
    found: Permuted


def judge_late(before: Sequence[UsedWords], after: UsedWords, at: IntArray) -> LateTest | None:
    """Judge words by both last windows; None without a window before these.

    before  the use of n words, the latest window first; after: in the window
    at      int64 [k], increasing: those that were just short in the latest window before

    What words have in common, and how much they change, is taken from those of most documents.
    """
    if len(before) < 2 or not len(at):
        return None
    seen = sum(after.pairs(name).sum(axis=1) for name in after.usage.by_source)
    words = np.union1d(at, np.argsort(-seen, kind="stable")[:SAMPLED])
    last, *older = (one.take(words) for one in before)
    found = between_times(older, after.take(words), last)
    p = np.ones(len(after.rows))
    p[at] = found.p[np.searchsorted(words, at)]
    return LateTest(p, words, found)
