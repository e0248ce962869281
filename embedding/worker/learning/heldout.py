"""Sentences that are held out of training, and the loss of their pairs under some tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from embedding.kernel.positions import positions
from embedding.kernel.records import CodeArray, FloatArray, IntArray, Table
from embedding.models.jit import kernel
from embedding.worker.learning.planning import CodedText

MAX_PAIRS = 8_192
"""Pairs that are remembered, the latest."""
MIN_PAIRS = 200
"""Pairs below which a mean loss says too little."""


@dataclass(frozen=True)
class HeldPairs:
    """Pairs with noise words of their own.

    centres, contexts  int64 [n] row ids; negatives  int64 [n, k]
    """

    centres: IntArray
    contexts: IntArray
    negatives: IntArray

    @cached_property
    def ids(self) -> IntArray:
        """int64, increasing: every word there is in them."""
        return np.unique(np.concatenate([self.centres, self.contexts, self.negatives.reshape(-1)]))

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray, IntArray]:
        ids = self.ids
        return (
            np.searchsorted(ids, self.centres),
            np.searchsorted(ids, self.contexts),
            np.searchsorted(ids, self.negatives),
        )

    def loss(self, ids: IntArray, rows: dict[Table, FloatArray]) -> float:
        """Mean loss in nats of a pair: -log σ(u·v) - Σ log σ(-u·v_noise).

        ids   int64 [m]: the row ids of both tables, in any order, `out` may have more behind
        rows  float32 [m, dim] by table
        """
        order = np.argsort(ids, kind="stable")
        row = order[positions(ids[order], self.ids)]
        return float(_loss(row, *self._places, rows[Table.IN], rows[Table.OUT])) / len(self.centres)


@kernel()
def _loss(row: Any, centres: Any, contexts: Any, negatives: Any, inner: Any, outer: Any) -> float:
    """Summed loss of pairs; row: of each place."""
    total = 0.0
    dim = inner.shape[1]
    for pair in range(len(centres)):
        centre = row[centres[pair]]
        for of in range(-1, negatives.shape[1]):
            other = row[contexts[pair] if of < 0 else negatives[pair, of]]
            score: Any = np.float32(0.0)
            for at in range(dim):
                score += inner[centre, at] * outer[other, at]
            raised = -score if of < 0 else score
            total += max(raised, np.float32(0.0)) + math.log1p(math.exp(-abs(raised)))
    return total


def hold_out(
    part: CodedText, share: float, random: np.random.Generator
) -> tuple[CodedText, IntArray, CodeArray]:
    """A part whose held-out sentences are unknown words, and these: ids int64 [n], offsets [m+1].

    Nothing of them is trained or remembered; they are counted as any others.
    """
    lengths = np.diff(part.sentences)
    out = random.random(len(lengths)) < share
    if not out.any():
        return part, np.empty(0, np.int64), np.zeros(1, np.int32)
    tokens = np.repeat(out, lengths)
    ids = part.table[part.codes[tokens]]
    offsets = np.concatenate([[0], np.cumsum(lengths[out])]).astype(np.int32)
    codes = part.codes.copy()
    codes[tokens] = len(part.table)
    return replace(part, table=np.append(part.table, -1), codes=codes), ids, offsets


def pairs_of(
    ids: IntArray,
    sentences: CodeArray,
    window: int,
    keep: Callable[[IntArray], FloatArray],
    random: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Centres and contexts of sentences, each as often as training would take it.

    A context at distance d comes by (window + 1 - d) / window, and both words by `keep`.
    """
    known = np.flatnonzero(ids >= 0)
    stays = np.zeros(len(ids), dtype=np.bool_)
    if len(known):
        stays[known] = random.random(len(known)) < keep(ids[known])
    owner = np.repeat(np.arange(len(sentences) - 1), np.diff(sentences))
    centres, contexts = [], []
    for distance in range(1, min(window, max(len(ids) - 1, 0)) + 1):
        left = np.arange(len(ids) - distance)
        right = left + distance
        both = stays[left] & stays[right] & (owner[left] == owner[right])
        for centre, context in ((left, right), (right, left)):
            taken = both & (random.random(len(both)) < (window + 1 - distance) / window)
            centres.append(ids[centre[taken]])
            contexts.append(ids[context[taken]])
    if not centres:
        return ids[:0], ids[:0]
    return np.concatenate(centres), np.concatenate(contexts)


class HeldOut:
    """The held-out pairs of a node's latest text.

    share     of the sentences that are held out; 0: none
    negative  noise words of a pair
    """

    def __init__(self, share: float, window: int, negative: int, seed: int) -> None:
        self.share, self._window, self._negative = share, window, negative
        self._random = np.random.default_rng([seed, 77])
        none = np.empty(0, dtype=np.int64)
        self._pairs = HeldPairs(none, none, none.reshape(0, negative))
        self._found: tuple[HeldPairs, IntArray, HeldPairs | None] = (self._pairs, none, None)

    def take(
        self,
        fresh: Sequence[CodedText],
        keep: Callable[[IntArray], FloatArray],
        noise: Callable[[int], IntArray],
    ) -> list[CodedText]:
        """The parts without what is held out of them, whose pairs are remembered.

        noise  so many row ids from the noise distribution; fewer: there is none yet
        """
        left = []
        for part in fresh:
            rest, ids, sentences = hold_out(part, self.share, self._random)
            left.append(rest)
            centres, contexts = pairs_of(ids, sentences, self._window, keep, self._random)
            drawn = noise(len(centres) * self._negative)
            if len(centres) and len(drawn) >= len(centres) * self._negative:
                drawn = drawn[: len(centres) * self._negative].reshape(-1, self._negative)
                self._remember(HeldPairs(centres, contexts, drawn))
        return left

    def pairs(self, known: Callable[[IntArray], IntArray], words: IntArray) -> HeldPairs | None:
        """The pairs whose words all have a row still; None: too few.

        known  int64 [n] → the same with -1 for words that have none
        words  row ids of all that have one
        """
        pairs = self._pairs
        if self._found[0] is not pairs or not np.array_equal(self._found[1], words):
            self._found = pairs, words, self._with_rows(known)
        return self._found[2]

    def _with_rows(self, known: Callable[[IntArray], IntArray]) -> HeldPairs | None:
        pairs = self._pairs
        rows = [pairs.centres, pairs.contexts, *pairs.negatives.T]
        complete = np.flatnonzero(np.all([known(each) >= 0 for each in rows], axis=0))
        if len(complete) < MIN_PAIRS:
            return None
        return HeldPairs(
            pairs.centres[complete], pairs.contexts[complete], pairs.negatives[complete]
        )

    def _remember(self, more: HeldPairs) -> None:
        old = self._pairs
        self._pairs = HeldPairs(
            np.concatenate([old.centres, more.centres])[-MAX_PAIRS:],
            np.concatenate([old.contexts, more.contexts])[-MAX_PAIRS:],
            np.concatenate([old.negatives, more.negatives])[-MAX_PAIRS:],
        )
