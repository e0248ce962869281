"""For `lsc.py`: what stands around words, as means of unit vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.snapshots.nearness import unit_rows
from embedding.trends.significance import TestArray
from yeoron_bench.changeset import Sentences

_MENTIONS = 20_000
"""Mentions at a time; memory is this × dim × 4 bytes, three times."""


@dataclass(frozen=True)
class Weighing:
    """How a context becomes one vector.

    window    words on each side
    frequent  a of the weight a / (a + p), p the word's share of the text (smooth inverse
              frequency; Arora, Liang and Ma 2017, equation 3); 0: all words count alike
    removed   leading directions that are taken off words along with their mean (Mu and
              Viswanath 2018)
    nearer    whether a word counts (window + 1 − distance) / window, as SGNS counts it
    """

    window: int = 5
    frequent: float = 1e-3
    removed: int = 0
    nearer: bool = False


def weighted(vectors: FloatArray, counts: IntArray, how: Weighing) -> FloatArray:
    """float32 [n, dim]: weight times (unit vector − weighted mean of all unit vectors)."""
    units = unit_rows(np.asarray(vectors, dtype=np.float32))
    share = counts / max(int(counts.sum()), 1)
    weight = how.frequent / (how.frequent + share) if how.frequent else np.ones(len(counts))
    heavy = share * weight
    units = units - (heavy @ units / max(float(heavy.sum()), 1e-12)).astype(np.float32)
    if how.removed:
        scaled = units * np.sqrt(heavy)[:, None]
        _, directions = np.linalg.eigh(scaled.T @ scaled)
        top = directions[:, -how.removed :]
        units = units - (units @ top) @ top.T
    found: FloatArray = (units * weight[:, None]).astype(np.float32)
    return found


def context_means(
    side: Sentences, words: IntArray, rows: CodeArray, vectors: FloatArray, how: Weighing
) -> TestArray:
    """Mean float64 [n, dim] of what stood around `words` (int64 [n], words of the change set) on
    one side, a unit vector a mention; NaN without one.

    rows  int32 [words]: row of each word in `told`, -1: it has no vector
    told  float32 [m, dim] by `weighted`
    """
    place = np.full(len(rows), -1, dtype=np.int64)
    place[words] = np.arange(len(words))
    tokens = rows[side.tokens]
    sentence = np.repeat(np.arange(len(side)), np.diff(side.offsets))
    at = np.flatnonzero(place[side.tokens] >= 0)
    counts, sums = np.zeros(len(words)), np.zeros((len(words), vectors.shape[1]))
    for first in range(0, len(at), _MENTIONS):
        part = at[first : first + _MENTIONS]
        around = unit_rows(_around(part, tokens, sentence, vectors, how))
        nonzero = around.any(axis=1)
        where = place[side.tokens[part[nonzero]]]
        np.add.at(counts, where, 1.0)
        np.add.at(sums, where, around[nonzero])
    with np.errstate(invalid="ignore"):
        means: TestArray = sums / counts[:, None]
    return means


def _around(
    at: IntArray, tokens: CodeArray, sentence: IntArray, vectors: FloatArray, how: Weighing
) -> FloatArray:
    """float32 [n, dim]: sum over the words around each place, within its sentence."""
    found = np.zeros((len(at), vectors.shape[1]), np.float32)
    for step in [*range(-how.window, 0), *range(1, how.window + 1)]:
        other = at + step
        inside = (other >= 0) & (other < len(tokens))
        other = np.where(inside, other, 0)
        inside &= (sentence[other] == sentence[at]) & (tokens[other] >= 0)
        factor = (how.window + 1 - abs(step)) / how.window if how.nearer else 1.0
        found[inside] += factor * vectors[tokens[other[inside]]]
    return found
