"""Vectors as everybody downstream reads them, from the rows that a model trains.

sgns, cbow  the `in` row
fasttext    the mean of a word's own row and those of its n-grams (Bojanowski 2017, section 3.2), so
            that a word which was just admitted has a vector already
glove       the row without the biases in its last columns
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch

from embedding.models.gramindex import GramIndex
from embedding.records import FloatArray, IntArray, Table
from embedding.server.rows.tables import Tables

Names = Callable[[IntArray], Sequence[str]]


class Copy(Protocol):
    """A consistent copy of rows, wherever they lie."""

    def pick(self, table: Table, slots: IntArray) -> FloatArray:
        """float32 [n, dim] of some slots."""
        ...

    def rows(self, table: Table) -> FloatArray:
        """float32 [n, dim], a whole table."""
        ...


class Composer:
    """Composes vectors of one server's tables.

    names   the words of some ids
    biases  columns at the end of each row that are no part of a vector
    """

    def __init__(self, tables: Tables, names: Names, *, biases: int = 0) -> None:
        self._tables = tables
        self._names = names
        self.biases = biases
        self._width = tables.dim - biases
        self._grams = GramIndex(tables.buckets) if tables.buckets else None

    def described(self) -> dict[str, object]:
        """What a snapshot says about its vectors."""
        if self._grams is not None:
            buckets = self._grams.buckets
            return {"vectors": "mean of a word's own row and its n-gram rows", "buckets": buckets}
        if self._width < self._tables.dim:
            return {"vectors": "rows without their bias"}
        return {}

    def forget(self, ids: IntArray) -> None:
        """Words were evicted (under the server's lock)."""
        if self._grams is not None:
            self._grams.forget(ids)

    def centres(self, ids: IntArray, slots: IntArray) -> torch.Tensor:
        """Vectors [n, d] of words as the tables are now (under the lock); slot -1 gives zeros."""
        if self._grams is None:
            return self.columns(self._tables.gather(Table.IN, slots))
        _, first, back = np.unique(ids, return_index=True, return_inverse=True)
        words, known = ids[first], slots[first] >= 0
        own = self._tables.gather(Table.IN, slots[first])
        rows = torch.from_numpy(np.flatnonzero(known)).to(own.device)
        own[rows] = self._mean(
            own[rows],
            words[known],
            self._tables.source(Table.SUB, accumulators=False),
            self._grams,
            self._names,
        )
        return own[torch.from_numpy(back).to(own.device)]

    def columns(self, rows: torch.Tensor) -> torch.Tensor:
        """The columns [..., d] of rows that are a vector."""
        return rows if self._width == rows.shape[-1] else rows[..., : self._width].contiguous()

    def copied(
        self, copy: Copy, ids: IntArray, slots: IntArray, words: Sequence[str]
    ) -> tuple[FloatArray, FloatArray]:
        """Vectors and context vectors, float32 [n, d], of words as a copy has them.

        ids int64 [n], increasing; slots int64 [n]; words str [n]
        """
        vectors = torch.from_numpy(copy.pick(Table.IN, slots))
        contexts = torch.from_numpy(copy.pick(Table.OUT, slots))
        if self._grams is not None:
            self._grams.keep(ids)
            vectors = self._mean(
                vectors,
                ids,
                torch.from_numpy(copy.rows(Table.SUB)),
                self._grams,
                lambda missing: [words[at] for at in np.searchsorted(ids, missing)],
            )
        return self.columns(vectors).numpy(), self.columns(contexts).numpy()

    def _mean(
        self, own: torch.Tensor, ids: IntArray, sub: torch.Tensor, grams: GramIndex, names: Names
    ) -> torch.Tensor:
        """(own row + sum of n-gram rows) / (1 + n-grams), float32 [n, dim]."""
        if not len(ids):
            return own
        flat, offsets = grams.of(ids, names)
        # A bag without an n-gram sums to zeros.
        total = torch.nn.functional.embedding_bag(
            torch.from_numpy(flat).to(sub.device),
            sub,
            torch.from_numpy(offsets[:-1]).to(sub.device),
            mode="sum",
        )
        rows = torch.from_numpy(1 + np.diff(offsets)).to(sub.device)
        return (own + total) / rows.unsqueeze(1)
