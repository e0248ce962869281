"""The rows of a batch side by side, and the sums that the nodes' answers make."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from embedding.exchange.payload import RowDelta
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.tables import WORD_TABLES, Tables
from embedding.server.rows.torchdevice import TorchDevice
from embedding.server.words.vocabulary import Vocabulary
from yeoron_lab.lbfgs.batch import Offer
from yeoron_lab.lbfgs.portions import Name

LEAST_SQUARED_NORM = 0.2
"""Mean squared length of rows that a curvature is judged by at least: untrained ones are nought."""


class Space:
    """Rows of `in` and of `out` that some portion names, as one float32 [rows, dim].

    A row that no portion names has no gradient and would never move: it is left out. What is
    minimised is F(x) = (Σ losses + ‖x - start‖²/(2·reach)) / pairs.

    reach   learning rates summed over a round; 0: without the second term
    start   the rows as they lie in the tables
    scale   float32 [rows, 1], an inverse of what the diagonal of the Hessian of F is at most:
            terms of the loss · mean squared length of the other table's rows / 4, + 1/reach
    """

    def __init__(
        self,
        tables: Tables,
        vocabulary: Vocabulary,
        offers: Mapping[Name, Offer],
        reach: float,
    ) -> None:
        self._tables = tables
        self._reach = reach
        self._ids = {table: _ids(offers, table) for table in WORD_TABLES}
        self.pairs = max(1, sum(offer.pairs for offer in offers.values()))
        rows = [tables.gather(t, vocabulary.slots(ids, "batch")) for t, ids in self._ids.items()]
        self.start = torch.cat([torch.as_tensor(each) for each in rows])
        self._device = TorchDevice(self.start.device)
        self._places = {name: self._where(offer) for name, offer in offers.items()}
        self.scale = self._scale(offers)
        self.clear()

    @property
    def nbytes(self) -> int:
        return self.start.numel() * self.start.element_size()

    def shape(self, name: Name) -> tuple[tuple[int, int], tuple[int, int]]:
        """Of the rows of a portion, `in` and `out`."""
        dim = self.start.shape[1]
        inward, outward = self._places[name]
        return (len(inward), dim), (len(outward), dim)

    def rows(self, name: Name, at: Tensor) -> tuple[FloatArray, FloatArray]:
        """The rows of a portion where loss and gradient are wanted."""
        inward, outward = self._places[name]
        return self._device.host(at[inward]), self._device.host(at[outward])

    def clear(self) -> None:
        """Nothing was counted yet, at the next rows."""
        self._loss = 0.0
        self._gradient = torch.zeros_like(self.start)

    def add(self, name: Name, loss: float, vectors: FloatArray, contexts: FloatArray) -> None:
        """A portion was computed."""
        self._loss += loss
        for offsets, values in zip(self._places[name], (vectors, contexts), strict=True):
            self._gradient.index_add_(0, offsets, self._device.place(values))

    def total(self, at: Tensor) -> tuple[float, Tensor]:
        """F and its gradient at `at`, once all portions were added."""
        loss, gradient = self._loss, self._gradient
        if self._reach > 0:
            moved = at - self.start
            loss += float(moved.square().sum(dim=0, dtype=torch.float64).sum()) / (2 * self._reach)
            gradient.add_(moved, alpha=1.0 / self._reach)
        return loss / self.pairs, gradient.div_(self.pairs)

    def moved(self, to: Tensor) -> list[RowDelta]:
        """How far the rows are from where they started, by table."""
        parts = torch.split(to - self.start, [len(ids) for ids in self._ids.values()])
        named = zip(self._ids.items(), parts, strict=True)
        return [RowDelta(table, ids, self._device.host(part)) for (table, ids), part in named]

    def _where(self, offer: Offer) -> tuple[Tensor, Tensor]:
        inward, outward = (
            np.searchsorted(self._ids[table], _named(offer, table)) for table in WORD_TABLES
        )
        outward += len(self._ids[Table.IN])
        return self._device.place(inward), self._device.place(outward)

    def _scale(self, offers: Mapping[Name, Offer]) -> Tensor:
        terms = torch.zeros(len(self.start), device=self.start.device)
        for name, offer in offers.items():
            for offsets, counts in zip(
                self._places[name], (offer.inward, offer.outward), strict=True
            ):
                terms.index_add_(0, offsets, self._device.place(counts))
        sizes = [len(ids) for ids in self._ids.values()]
        counts_in, counts_out = torch.split(terms, sizes)
        inward, outward = torch.split(self.start.square().sum(1), sizes)
        curvature = torch.cat(
            [counts_in * _mean(outward, counts_out), counts_out * _mean(inward, counts_in)]
        )
        floor = 1.0 / self._reach if self._reach > 0 else LEAST_SQUARED_NORM
        return (self.pairs / (0.25 * curvature + floor)).unsqueeze(1)


def _mean(lengths: Tensor, terms: Tensor) -> float:
    """Mean squared length of rows over the terms that they are in."""
    total = float(terms.sum())
    mean = float((lengths * terms).sum()) / total if total else 0.0
    return max(mean, LEAST_SQUARED_NORM)


def _named(offer: Offer, table: Table) -> IntArray:
    return offer.words if table is Table.IN else np.concatenate([offer.words, offer.extras])


def _ids(offers: Mapping[Name, Offer], table: Table) -> IntArray:
    """int64, increasing: all rows of a table that are named."""
    named = [_named(offer, table) for offer in offers.values()]
    return np.unique(np.concatenate(named)) if named else np.empty(0, dtype=np.int64)
