"""How chosen words were used: in a snapshot, by source, and the units of all that is compared.

A replica of a window holds what the contexts of its words say in some of the window's texts
(`snapshots/usage.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.usage import Usage

Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class UsedWords:
    """The use of n words in a snapshot: usage, and the row int64 [n] of each word in it."""

    usage: Usage
    rows: IntArray

    def take(self, words: IntArray) -> UsedWords:
        """Some of the words."""
        return replace(self, rows=self.rows[words])

    @property
    def busiest(self) -> UsedWords | None:
        """The same words in what the busiest authors wrote; None where that is not known."""
        busiest = self.usage.busiest
        return None if busiest is None else UsedWords(busiest, self.rows)

    def pairs(self, source: str) -> FloatArray:
        """N float32 [n, r] of a source; 0 where it lacks a word."""
        return self._pairs(*self._of(source))

    def replicas(self, source: str) -> tuple[FloatArray, FloatArray]:
        """N and means float32 [n, r] and [n, r, k · dim] of a source; 0 where it lacks a word."""
        placed, chosen = self._of(source)
        means = np.zeros((len(self.rows), *self.usage.means.shape[1:]), dtype=np.float32)
        means[placed] = self.usage.means[chosen]
        return self._pairs(placed, chosen), means

    def _pairs(self, placed: IntArray, chosen: IntArray) -> FloatArray:
        pairs = np.zeros((len(self.rows), self.usage.pairs.shape[1]), dtype=np.float32)
        pairs[placed] = self.usage.pairs[chosen]
        return pairs

    def _of(self, source: str) -> tuple[IntArray, IntArray]:
        own = self.usage.by_source.get(source)
        if own is None or not len(own):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        matches = positions(self.usage.rows[own], self.rows)
        placed = np.flatnonzero(matches >= 0)
        return placed, own[matches[placed]]


@dataclass(frozen=True)
class Units:
    """The units of n words.

    documents  float32 [n, u]; sums float32 [n, u, dim]
    later      bool [u]; source int64 [u]: 0, 1, 2, …
    older      bool [u]: of windows before the last one that is compared with
    """

    documents: FloatArray
    sums: FloatArray
    later: Labels
    source: IntArray
    older: Labels

    def merged(self, most: int) -> Units:
        """At most so many units (but two of each source and time); halves of them are added up."""
        units = self
        while len(units.later) > most:
            keys = 4 * units.source + 2 * units.older + units.later
            groups = [np.flatnonzero(keys == key) for key in np.unique(keys)]
            if all(len(group) <= 2 for group in groups):
                break
            parts = [np.array_split(group, max(2, (len(group) + 1) // 2)) for group in groups]
            chosen = [part for group in parts for part in group]
            firsts = np.array([part[0] for part in chosen])
            units = Units(
                np.stack([units.documents[:, part].sum(axis=1) for part in chosen], axis=1),
                np.stack([units.sums[:, part].sum(axis=1) for part in chosen], axis=1),
                units.later[firsts],
                units.source[firsts],
                units.older[firsts],
            )
        return units

    def take(self, chosen: Labels) -> Units:
        """Some of the units, bool [u]."""
        return Units(
            self.documents[:, chosen],
            self.sums[:, chosen],
            self.later[chosen],
            self.source[chosen],
            self.older[chosen],
        )

    def residuals(self) -> tuple[FloatArray, FloatArray]:
        """R float32 [n, u, dim] and documents float32 [n, u], of sources that have both times.

        Of a source that a word has at one time only, both are 0.
        """
        rest, documents = self.sums.copy(), self.documents.copy()
        for source in np.unique(self.source).tolist():
            own = np.flatnonzero(self.source == source)
            counts = documents[:, own]
            after = counts[:, self.later[own]].sum(axis=1)
            total = counts.sum(axis=1)
            both = (after > 0) & (after < total)
            mean = rest[:, own].sum(axis=1) / np.maximum(total, 1e-9)[:, None]
            rest[:, own] -= counts[..., None] * mean[:, None]
            documents[:, own] *= both[:, None]
            rest[:, own] *= both[:, None, None]
        return rest, documents
