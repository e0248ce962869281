"""Vectors of young words for those who read, laid over the rows that are trained.

Nodes add up what stands around words that were read only a few times (`worker/young.py`); the sums
are kept here by word, and whoever reads vectors (snapshots, nearest words, evaluation at a cut)
gets one inferred from them (`models/inference.py`). Pulls and scores before learning never see it:
inferred rows that were trained on spoilt the rows around them (docs/adr/0008-young-words.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.protocol import Push
from embedding.models.contextsums import ContextSums
from embedding.models.inference import Frame
from embedding.positions import positions
from embedding.records import FloatArray, IntArray, TimeArray
from embedding.server.config import ServerConfig
from embedding.server.words.vocabulary import Vocabulary

_COLUMNS = ("sums", "weights", "mentions")
LEAST = 3
"""Mentions from which a vector is inferred."""
KNOWN_WORDS = 4096
"""Known words with sums, from which it is learnt how vectors follow from contexts."""
LEAST_KNOWN = 20
"""Mentions from which a known word counts for that."""
_FRESH = 1000
"""Mentions of a known word at which its sums are halved, so that they follow the tables."""


@dataclass(frozen=True)
class Held:
    """What is known of the young ones among some words.

    at         int64 [m], which of these words
    sums       float32 [m, dim], weights float32 [m]: Σ w u/|u| and Σ w of `inference.py`
    gradient   float32 [m], how much the trained row counts, 0 to 1
    """

    at: IntArray
    sums: FloatArray
    weights: FloatArray
    gradient: FloatArray

    def over(self, rows: FloatArray, frame: Frame) -> FloatArray:
        """What readers get in place of the trained rows, float32 [m, dim]."""
        share = self.gradient[:, None]
        found: FloatArray = share * rows + (1.0 - share) * frame.infer(self.sums, self.weights)
        return found


@dataclass(frozen=True)
class Taught:
    """Known words and what stands around them: ids int64 [n], sums [n, dim] and weights [n]."""

    ids: IntArray
    sums: FloatArray
    weights: FloatArray

    def frame(self, ids: IntArray, vectors: FloatArray) -> Frame | None:
        """What they teach, by vectors [m, dim] of ids int64 [m]; None when it is too little."""
        order = np.argsort(ids, kind="stable")
        place = positions(ids[order], self.ids)
        there = place >= 0
        return Frame.of(vectors[order[place[there]]], self.sums[there], self.weights[there])


class Overlay:
    """Context sums of young words and of some known ones. Not thread-safe: guarded by a lock.

    A word is young from its admission until its running count first reaches `mentions`; one that
    is read less and less keeps its trained row.

    mentions  0: nothing is kept
    limit     words with sums, the latest read
    """

    def __init__(self, dim: int, vocabulary: Vocabulary, *, mentions: int, limit: int) -> None:
        self.mentions = mentions
        self._dim = dim
        self._vocabulary = vocabulary
        self._sums: ContextSums[int] = ContextSums(dim, limit)
        self._known: ContextSums[int] = ContextSums(dim, KNOWN_WORDS)
        self._grown = np.zeros(0, dtype=np.bool_)

    @classmethod
    def of(cls, config: ServerConfig, dim: int, vocabulary: Vocabulary) -> Overlay:
        """As a server's settings say."""
        return cls(dim, vocabulary, mentions=config.young_mentions, limit=config.young_words)

    def __len__(self) -> int:
        return len(self._sums)

    def learnt(self, push: Push) -> None:
        """A push was taken and its words were counted."""
        if not self.mentions:
            return
        self._grow(np.unique(push.counts.ids[push.counts.ids >= 0]))
        if push.young is None:
            return
        young = push.young
        slots = self._vocabulary.slots(young.ids, "push")
        fit = slots >= 0
        grown = fit.copy()
        grown[fit] = self._has_grown(slots[fit])
        for held, chosen in ((self._sums, fit & ~grown), (self._known, grown)):
            sums = young.sums[chosen].astype(np.float32)
            keys = young.ids[chosen].tolist()
            held.add(keys, sums, young.weights[chosen], young.mentions[chosen])
        self._known.halve(_FRESH)

    def placed(self, slots: IntArray, evicted: IntArray) -> None:
        """New words have these slots; ids that were evicted have none."""
        if self.mentions:
            self._room()
            self._grown[slots] = False
            self._sums.forget(evicted.tolist())
            self._known.forget(evicted.tolist())

    def taught(self) -> Taught:
        """The known words that say how vectors follow from contexts."""
        known, ids = self._known, np.array(self._known.keys(), dtype=np.int64)
        at = known.places(ids.tolist())
        fit = (known.mentions[at] >= LEAST_KNOWN) & (known.weights[at] > 0)
        return Taught(ids[fit], known.sums[at[fit]], known.weights[at[fit]])

    def held(self, ids: IntArray, counts: TimeArray) -> Held:
        """The young ones among words: ids int64 [n], running counts float64 [n]."""
        sums = self._sums
        places = sums.places(ids.tolist()) if len(sums) else np.full(len(ids), -1)
        at = np.flatnonzero(places >= 0)
        at = at[(sums.mentions[places[at]] >= LEAST) & (sums.weights[places[at]] > 0)]
        own = places[at]
        return Held(at, sums.sums[own], sums.weights[own], trust(counts[at], self.mentions))

    def content(self) -> dict[str, npt.NDArray[Any]]:
        """Copies for a checkpoint, by name."""
        self._room()
        alive = self._vocabulary.alive()
        grown = self._grown[self._vocabulary.slots(alive, "checkpoint")]
        found = {"young.grown": alive[grown]}
        for name, held in (("young", self._sums), ("known", self._known)):
            ids = np.array(held.keys(), dtype=np.int64)
            at = held.places(ids.tolist())
            found[f"{name}.ids"] = ids
            found |= {f"{name}.{column}": getattr(held, column)[at] for column in _COLUMNS}
        return found

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a checkpoint, once the vocabulary is there; an old one has nothing of this."""
        self._room()
        alive = self._vocabulary.alive()
        often = alive[self._vocabulary.counts(alive) >= self.mentions]
        grown = arrays.get("young.grown", often)
        self._grown[self._vocabulary.slots(grown, "checkpoint")] = True
        for name, held in (("young", self._sums), ("known", self._known)):
            if self.mentions and f"{name}.sums" in arrays:
                columns = (np.array(arrays[f"{name}.{column}"]) for column in _COLUMNS)
                held.add(arrays[f"{name}.ids"].tolist(), *columns)

    def _grow(self, ids: IntArray) -> None:
        """Words that were read often enough are young no longer."""
        slots = self._vocabulary.slots(ids, "push")
        ids, slots = ids[slots >= 0], slots[slots >= 0]
        new = ~self._has_grown(slots)
        ids, slots = ids[new], slots[new]
        often = self._vocabulary.counts(ids) >= self.mentions
        self._grown[slots[often]] = True
        sums, grown = self._sums, ids[often]
        at = sums.places(grown.tolist())
        grown, at = grown[at >= 0], at[at >= 0]
        self._known.add(grown.tolist(), sums.sums[at], sums.weights[at], sums.mentions[at])
        sums.forget(grown.tolist())

    def _has_grown(self, slots: IntArray) -> npt.NDArray[np.bool_]:
        self._room()
        return self._grown[slots]

    def _room(self) -> None:
        if self._vocabulary.rows > len(self._grown):
            more = np.zeros(max(1024, 2 * self._vocabulary.rows), dtype=np.bool_)
            more[: len(self._grown)] = self._grown
            self._grown = more


def trust(counts: TimeArray, mentions: int) -> FloatArray:
    """How much a trained row counts after so many mentions, float32 [n]."""
    found: FloatArray = np.clip(counts / max(mentions, 1), 0.0, 1.0).astype(np.float32)
    return found
