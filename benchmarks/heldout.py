"""Skip-gram loss of a snapshot on lines that were not learnt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from embedding.evaluation.losses import nll
from embedding.kernel.records import FloatArray, IntArray

PAIRS = 100_000
WINDOW, NEGATIVE = 5, 5


class Tables(Protocol):
    """What is scored; a snapshot is one.

    words, counts      of each row
    vectors, contexts  float32 [n, dim]
    """

    @property
    def words(self) -> Sequence[str]: ...

    @property
    def counts(self) -> IntArray: ...

    @property
    def vectors(self) -> FloatArray: ...

    @property
    def contexts(self) -> FloatArray: ...


def held_out_loss(
    snapshot: Tables, lines: Sequence[str], among: Collection[str], *, seed: int = 1
) -> float:
    """Mean nats a pair of words `among` those that all sides have rows of.

    Negatives are drawn by count^0.75; the same pairs and negatives for the same `among` and seed.
    """
    places_of = {word: place for place, word in enumerate(snapshot.words)}
    chosen_words = sorted(among)
    rows = {word: places_of[word] for word in chosen_words}
    rng = np.random.default_rng(seed)
    centres: list[int] = []
    contexts: list[int] = []
    for line in lines:
        known = [rows[word] for word in line.split() if word in rows]
        for at, centre in enumerate(known):
            around = known[max(0, at - WINDOW) : at] + known[at + 1 : at + 1 + WINDOW]
            centres += [centre] * len(around)
            contexts += around
    chosen = rng.permutation(len(centres))[:PAIRS]
    kept_rows = np.array([rows[word] for word in chosen_words])
    counts = np.asarray(snapshot.counts, dtype=np.float64)[kept_rows] ** 0.75
    noise = kept_rows[rng.choice(len(kept_rows), (len(chosen), NEGATIVE), p=counts / counts.sum())]
    vectors, out = np.asarray(snapshot.vectors), np.asarray(snapshot.contexts)
    u, v = np.array(centres)[chosen], np.array(contexts)[chosen]
    return float(nll(vectors[u], out[v], out[noise]).mean())
