"""Vectors of rare words for those who read, laid over the rows that are trained.

Nodes tell what stood around words that were read only a few times (`worker/words`); it is
kept here by word, and whoever reads vectors (snapshots, nearest words, evaluation at a cut)
gets one inferred from them (`models/inference.py`). Pulls and scores before learning never see it:
inferred rows that were trained on spoilt the rows around them (docs/adr/0008-young-words.md).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, TimeArray
from embedding.models.contextbags import ContextBag, ContextBags
from embedding.models.inference import Frame, directions
from embedding.server.parts import Content, Moment, Part, PushArrival, Saved
from embedding.server.words.vocabulary import Vocabulary


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
    """How rare words are read: output rows at length 1, ids increasing, and what known ones teach.

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
        vectors = rows.copy()
        if fit.any():
            vectors[fit] = self.frame.infer(sums[fit], weights[fit], other_names=other_names)
        return vectors


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
        mixed: FloatArray = share * rows + (1.0 - share) * inferred
        return mixed


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


_LEAST = 3
"""Mentions from which a vector is inferred."""
KNOWN_WORDS = 4096
"""Known words with contexts, from which it is learnt how vectors follow from contexts."""
LEAST_KNOWN = 20
"""Mentions from which a known word counts for that."""
DRAWN = 4096
"""Contexts that are drawn by their counts, from which it is learnt how contexts differ."""
_FRESH = 1000
"""Mentions of a known word at which they are halved, so that they follow its use."""


class InferredVectors(Part):
    """Contexts of rare words and of some known ones. Not thread-safe: guarded by a lock.

    A word is rare from its admission until its running count first reaches `mentions`; one that
    is read less and less keeps its trained row.

    mentions  0: nothing is kept
    limit     words with contexts, the latest read
    """

    def __init__(self, vocabulary: Vocabulary, *, mentions: int, limit: int) -> None:
        self.mentions = mentions
        self._vocabulary = vocabulary
        self._rare: ContextBags[int] = ContextBags(limit)
        self._known: ContextBags[int] = ContextBags(KNOWN_WORDS)
        self._grown = np.zeros(0, dtype=np.bool_)
        self._steps: IntArray | None = None

    def __len__(self) -> int:
        return len(self._rare)

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        """See Part; its words were counted."""
        push = arrival.push
        if not self.mentions:
            return
        self._grow(np.unique(push.counts.ids[push.counts.ids >= 0]))
        if push.rare is None:
            return
        rare = push.rare
        slots = self._vocabulary.slots(rare.ids, "push")
        fit = slots >= 0
        grown = fit.copy()
        grown[fit] = self._has_grown(slots[fit])
        for held, chosen, fresh in ((self._rare, fit & ~grown, 0), (self._known, grown, _FRESH)):
            held.add(rare.ids[chosen].tolist(), rare.bags.of(chosen), fresh)

    def placed(self, slots: IntArray, evicted: IntArray) -> None:
        """New words have these slots; ids that were evicted have none."""
        if self.mentions:
            self._room()
            self._grown[slots] = False
            self._rare.forget(evicted.tolist())
            self._known.forget(evicted.tolist())

    def taught(self) -> Taught:
        """The known words that say how vectors follow from contexts."""
        ids = np.array(self._known.keys(), dtype=np.int64)
        ids = ids[self._known.mentions(ids.tolist()) >= LEAST_KNOWN]
        return Taught(ids, self._known.of(ids.tolist()), self._drawn())

    def contexts(self) -> IntArray:
        """Ids of the words whose output rows are needed to read rare ones, int64 [c], distinct."""
        parts = [self._rare.contexts(), self._known.contexts(), self._drawn()]
        ids = np.unique(np.concatenate(parts))
        alive: IntArray = ids[self._vocabulary.slots(ids, "read") >= 0]
        return alive

    def _drawn(self) -> IntArray:
        """Contexts by their running counts, at equal steps through all that was read."""
        if self._steps is not None:
            return self._steps
        alive = self._vocabulary.alive()
        ends = np.cumsum(self._vocabulary.counts(alive))
        if not len(ends) or not ends[-1] > 0:
            return alive[:0]
        steps = (np.arange(DRAWN) + 0.5) * (ends[-1] / DRAWN)
        drawn: IntArray = alive[np.minimum(np.searchsorted(ends, steps), len(alive) - 1)]
        return drawn

    def held(self, ids: IntArray, counts: TimeArray) -> KnownContexts:
        """Those of which more is known: ids int64 [n] of words, running counts float64 [n]."""
        listed = ids.tolist()
        rare = np.flatnonzero(self._rare.mentions(listed if len(self) else ()) >= _LEAST)
        known = np.flatnonzero(self._known.mentions(listed) >= LEAST_KNOWN)
        at = np.concatenate([rare, known])
        bags = self._rare.of(ids[rare].tolist()).and_of(self._known.of(ids[known].tolist()))
        return KnownContexts(at, bags, trust(counts[at], self.mentions), len(rare))

    def save(self) -> Saved:
        self._room()
        alive = self._vocabulary.alive()
        grown = alive[self._grown[self._vocabulary.slots(alive, "checkpoint")]]
        rare, known = self._rare.copied(), self._known.copied()

        def arrays(_: Any) -> dict[str, npt.NDArray[Any]]:
            columns_by_name = {"rare.grown": grown}
            for name, held in (("rare", rare), ("known", known)):
                columns_by_name[f"{name}.ids"] = np.array(held.keys(), dtype=np.int64)
                columns = held.of(held.keys())._asdict()
                columns_by_name |= {
                    f"{name}.{column}": values for column, values in columns.items()
                }
            return columns_by_name

        return Saved({}, arrays)

    def describe(self, at: Moment) -> dict[str, Any]:
        return {"rare_words": {"held": len(self), "mentions": self.mentions}}

    def copied(self) -> InferredVectors:
        """For `held` and `taught` later on; contexts are drawn by the counts of now."""
        other = InferredVectors(self._vocabulary, mentions=self.mentions, limit=self._rare.limit)
        other._rare, other._known = self._rare.copied(), self._known.copied()
        other._steps = self._drawn()
        return other

    def load(self, content: Content) -> None:
        """See Part; the vocabulary is there already."""
        self._room()
        arrays = content.arrays
        self._grown[self._vocabulary.slots(arrays["rare.grown"], "checkpoint")] = True
        for name, held in (("rare", self._rare), ("known", self._known)):
            if self.mentions:
                parts = (np.array(arrays[f"{name}.{part}"]) for part in ContextBag._fields)
                held.add(arrays[f"{name}.ids"].tolist(), ContextBag(*parts))

    def _grow(self, ids: IntArray) -> None:
        """Words that were read often enough are rare no longer."""
        slots = self._vocabulary.slots(ids, "push")
        ids, slots = ids[slots >= 0], slots[slots >= 0]
        new = ~self._has_grown(slots)
        ids, slots = ids[new], slots[new]
        often = self._vocabulary.counts(ids) >= self.mentions
        self._grown[slots[often]] = True
        grown = [id_ for id_ in ids[often].tolist() if id_ in self._rare]
        self._known.add(grown, self._rare.of(grown))
        self._rare.forget(grown)

    def _has_grown(self, slots: IntArray) -> npt.NDArray[np.bool_]:
        self._room()
        return self._grown[slots]

    def _room(self) -> None:
        if self._vocabulary.rows > len(self._grown):
            more = np.zeros(max(1024, 2 * self._vocabulary.rows), dtype=np.bool_)
            more[: len(self._grown)] = self._grown
            self._grown = more


def trust(counts: TimeArray, mentions: int) -> FloatArray:
    """How much a trained row counts after so many mentions, float32 [n]: c / (c + m).

    After m of them it says as much of a word as what stood around it. All words are read so, not
    rare ones alone: a new word and the known one that it stands for are then compared alike
    (docs/adr/0008-young-words.md).
    """
    shares: FloatArray = (counts / (counts + max(mentions, 1))).astype(np.float32)
    return shares
