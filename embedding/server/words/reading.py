"""Words as they are read: their rows, and what stood around them, by the rows of that moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.contextbags import ContextBag
from embedding.models.inference import Frame, directions


@dataclass(frozen=True)
class IdRows:
    """Rows of one table: ids int64 [n], distinct, and values float32 [n, dim]."""

    ids: IntArray
    values: FloatArray

    def ordered(self) -> IdRows:
        """The same with increasing ids."""
        if bool((np.diff(self.ids) > 0).all()):
            return self
        order = np.argsort(self.ids, kind="stable")
        return IdRows(self.ids[order], self.values[order])


@dataclass(frozen=True)
class RareWordReading:
    """How young words are read: output rows at length 1, ids increasing, and what known ones teach.

    A context that has no row any more says nothing.
    """

    units: IdRows
    frame: Frame

    def infer(self, rows: FloatArray, bags: ContextBag, *, other_names: bool = True) -> FloatArray:
        """Vectors float32 [m, dim] of words with these bags; `rows` where contexts say nothing.

        other_names  see Frame.infer
        """
        sums, weights = added(self.units, bags)
        fit = weights > 0
        found = rows.copy()
        if fit.any():
            found[fit] = self.frame.infer(sums[fit], weights[fit], other_names=other_names)
        return found


@dataclass(frozen=True)
class KnownContexts:
    """What is known of some words besides their trained rows.

    at         int64 [m], which words these are; bags of what stood around them, of m words
    gradient   float32 [m], how much the trained row counts, 0 to 1
    rare       how many of them are rare: the first ones; the others are known
    """

    at: IntArray
    bags: ContextBag
    gradient: FloatArray
    rare: int

    def over(self, rows: FloatArray, reading: RareWordReading) -> FloatArray:
        """What readers get in place of the trained rows, float32 [m, dim]."""
        n = self.rare
        where = np.arange(len(rows))
        inferred = np.concatenate(
            [
                reading.infer(rows[:n], self.bags.of(where < n)),
                reading.infer(rows[n:], self.bags.of(where >= n), other_names=False),
            ]
        )
        share = self.gradient[:, None]
        found: FloatArray = share * rows + (1.0 - share) * inferred
        return found


@dataclass(frozen=True)
class Taught:
    """Known words and what stands around them: ids int64 [n] and bags of n words.

    drawn  int64 [m], ids of contexts, each as often as it is read
    """

    ids: IntArray
    bags: ContextBag
    drawn: IntArray

    def reading(self, vectors: IdRows, contexts: IdRows) -> RareWordReading | None:
        """What they teach, by rows as they are now; None when it is too little."""
        vectors, contexts = vectors.ordered(), contexts.ordered()
        units = IdRows(contexts.ids, directions(contexts.values))
        sums, weights = added(units, self.bags)
        place, drawn = positions(vectors.ids, self.ids), positions(units.ids, self.drawn)
        fit = (place >= 0) & (weights > 0)
        known = vectors.values[place[fit]]
        frame = Frame.of(known, sums[fit], weights[fit], units.values[drawn[drawn >= 0]])
        return None if frame is None else RareWordReading(units, frame)


def added(units: IdRows, bags: ContextBag) -> tuple[FloatArray, FloatArray]:
    """Σ w u/|u| float32 [n, dim] and Σ w float32 [n] of bags, over contexts that have a row."""
    from scipy.sparse import csr_array  # only here: most servers and shards read no words

    place = positions(units.ids, bags.contexts.astype(np.int64))
    weights = np.where(place >= 0, bags.weights, np.float32(0.0)).astype(np.float32)
    ends = np.concatenate([[0], np.cumsum(bags.sizes)])
    shape = (len(bags.sizes), len(units.ids))
    around = csr_array((weights, np.maximum(place, 0), ends), shape=shape)
    sums: FloatArray = np.asarray(around @ units.values, dtype=np.float32)
    return sums, np.asarray(around.sum(axis=1), dtype=np.float32)
