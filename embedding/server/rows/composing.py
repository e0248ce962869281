"""Vectors as everybody downstream reads them, from the rows that a model trains.

sgns, cbow  the `in` row
fasttext    the mean of a word's own row and those of its n-grams (Bojanowski 2017, section 3.2), so
            that a word which was just admitted has a vector already
glove       the row without the biases in its last columns
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.devices import DeviceArray
from embedding.kernel.records import CodeArray, FloatArray, IntArray, Table
from embedding.models.subwords import GramIndex
from embedding.server.rows.devices import beside, contiguous, sum_rows
from embedding.server.rows.tables import RowsCopy, Tables

_WordNames = Callable[[IntArray], Sequence[str]]


@dataclass(frozen=True)
class GramBags:
    """The n-grams of some words: those of word i are buckets[offsets[i] : offsets[i + 1]].

    buckets  int32 [g]; offsets  int32 [n + 1]
    """

    buckets: CodeArray
    offsets: CodeArray

    def sums(self, rows: DeviceArray) -> DeviceArray:
        """Sum [n, dim] of each bag's rows; zeros for a bag without an n-gram."""
        if isinstance(rows, np.ndarray):
            sums: FloatArray = np.empty((len(self.offsets) - 1, rows.shape[1]), dtype=np.float32)
            sum_rows(rows, self.buckets, self.offsets, sums)
            return sums
        from embedding.server.rows.torchdevice import sum_bags

        return sum_bags(rows, self.buckets, self.offsets)


class GramComposer:
    """Composes vectors of the rows of one server, here or on shards.

    names    the words of some ids
    buckets  rows of n-grams, 0 where a row is a vector already
    biases   columns at the end of each row that are no part of a vector
    """

    def __init__(
        self, tables: Tables, names: _WordNames, *, buckets: int = 0, biases: int = 0
    ) -> None:
        self._tables = tables
        self._names = names
        self.buckets = buckets
        self.biases = biases
        self._width = tables.dim - biases
        self._grams = GramIndex(buckets) if buckets else None

    def described(self) -> dict[str, object]:
        """What a snapshot says about its vectors."""
        if self._grams is not None:
            what = "mean of a word's own row and its n-gram rows"
            return {"vectors": what, "buckets": self.buckets}
        if self._width < self._tables.dim:
            return {"vectors": "rows without their bias"}
        return {}

    def forget(self, ids: IntArray) -> None:
        """Words were evicted (under the server's lock)."""
        if self._grams is not None:
            self._grams.forget(ids)

    def centres(self, ids: IntArray, slots: IntArray) -> DeviceArray:
        """Vectors [n, d] of words as the tables are now (under the lock); slot -1 gives zeros."""
        if self._grams is None:
            return self.columns(self._tables.gather(Table.IN, slots))
        _, first, back = np.unique(ids, return_index=True, return_inverse=True)
        own = self._tables.gather(Table.IN, slots[first])
        sub = self._tables.source(Table.SUB, accumulators=False)
        bags = _bags(self._grams, ids[first], slots[first] >= 0, self._names)
        return mean(own, bags.sums(sub), bags)[beside(back, own)]

    def bags(self, ids: IntArray, slots: IntArray) -> GramBags | None:
        """The n-grams of words (under the lock), none of one with slot -1; None: there are none."""
        if self._grams is None:
            return None
        return _bags(self._grams, ids, slots >= 0, self._names)

    def columns(self, rows: DeviceArray) -> DeviceArray:
        """The columns [..., d] of rows that are a vector."""
        return rows if self._width == rows.shape[-1] else contiguous(rows[..., : self._width])

    def copied(
        self, copy: RowsCopy, ids: IntArray, slots: IntArray, words: Sequence[str]
    ) -> tuple[FloatArray, FloatArray]:
        """Vectors and context vectors, float32 [n, d], of words as a copy has them.

        ids int64 [n], increasing; slots int64 [n]; words str [n]
        """
        vectors = copy.pick(Table.IN, slots)
        contexts = copy.pick(Table.OUT, slots)
        if self._grams is not None:
            self._grams.keep(ids)

            def names(missing: IntArray) -> list[str]:
                return [words[at] for at in np.searchsorted(ids, missing)]

            bags = _bags(self._grams, ids, slots >= 0, names)
            vectors = mean(vectors, bags.sums(copy.rows(Table.SUB)), bags)
        return self.columns(vectors), self.columns(contexts)


def mean(own: DeviceArray, sums: DeviceArray, bags: GramBags) -> DeviceArray:
    """(own row + sum of n-gram rows) / (1 + n-grams), float32 [n, dim]."""
    rows = (1 + np.diff(bags.offsets)).astype(np.float32)
    return (own + sums) / beside(rows, own)[:, None]


def _bags(
    grams: GramIndex, ids: IntArray, known: npt.NDArray[np.bool_], names: _WordNames
) -> GramBags:
    """Bags of words; an empty one where a word is not known."""
    buckets, ends = grams.of(ids[known], names)
    offsets: CodeArray = np.zeros(len(ids) + 1, dtype=np.int32)
    offsets[1:][known] = np.diff(ends)
    np.cumsum(offsets, out=offsets)
    return GramBags(buckets, offsets)
