"""Which rows go by all-reduce: those that are touched so often that the server is the longer way.

Parallax (Kim et al. 2019, section 3) sends dense variables by all-reduce and sparse ones by the
parameter server. The rows of an embedding are both at once: a few thousand words are in nearly
every block, the others in few of them. So the choice is made row by row, from what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from embedding.exchange.payload import RowDelta
from embedding.exchange.topology import TopologyConfig
from embedding.kernel.config import part_of
from embedding.kernel.records import IntArray, Table
from yeoron_lab.allreduce.replica import Replica
from yeoron_lab.allreduce.ring import Ring
from yeoron_lab.settings import SumSettings

STAYS = 0.8
"""A row that goes by all-reduce does so until its density falls below this part of the threshold:
changing the way costs a pull and a broadcast."""
DENSE_SHARE = 0.95
"""Rows that are in so many blocks go by all-reduce whatever the number of nodes."""
FIRST_CHOICE = 4
"""hybrid: blocks measured before the first choice, when less than `rechoose_blocks`."""


def threshold(nodes: int, row_bytes: int) -> float:
    """Density (share of blocks that touch a row) from which on all-reduce is the better way.

    Each clock the server's connection carries nodes·density rows in each direction, `row_bytes` a
    column (2 or 4); a node's connection in the ring 2·(nodes-1)/nodes rows of 4. The busier of the
    two connections binds, so they are equal at density 8·(nodes-1) / (nodes²·row_bytes).
    """
    return min(DENSE_SHARE, 8 * (nodes - 1) / (nodes**2 * row_bytes)) if nodes > 1 else DENSE_SHARE


class Touches:
    """How many blocks touched each row since the last choice.

    counts  int32 [n], by row id
    """

    def __init__(self) -> None:
        self.counts = np.zeros(0, dtype=np.int32)

    def note(self, ids: IntArray) -> None:
        if len(ids):
            self.reserve(int(ids.max()) + 1)
            self.counts[ids] += 1

    def reserve(self, rows: int) -> None:
        """Make room for ids below `rows`."""
        if rows > len(self.counts):
            room = max(rows, 2 * len(self.counts))
            self.counts = np.concatenate(
                [self.counts, np.zeros(room - len(self.counts), dtype=np.int32)]
            )

    def forget(self) -> None:
        self.counts[:] = 0


def choose(touched: IntArray, blocks: int, least: float, dense: IntArray) -> IntArray:
    """Ids (int64, increasing) of the rows that go by all-reduce from now on.

    touched  int [n], blocks that touched each row, on all nodes
    blocks   blocks learnt meanwhile, on all nodes
    least    density from which on a row does
    dense    ids (increasing) that do so far
    """
    if not blocks:
        return dense
    need = np.full(len(touched), least * blocks)
    need[dense] *= STAYS
    dense_now: IntArray = np.flatnonzero(touched >= np.maximum(need, 1.0)).astype(np.int64)
    return dense_now


class DenseChoice:
    """The rows that go by all-reduce: all, or those that were touched often enough.

    buckets  rows of n-grams, 0 for none
    least    hybrid: density from which on a row is dense
    """

    def __init__(
        self,
        config: TopologyConfig,
        replicas: Mapping[Table, Replica],
        *,
        buckets: int,
        least: float,
    ) -> None:
        self.least = least
        self._config, self._replicas = config, replicas
        self._rechoose = part_of(config, SumSettings).rechoose_blocks
        self._touches = {table: Touches() for table in replicas}
        self._buckets = buckets
        self._blocks = self._chosen_at = 0

    def begin(self, step: int) -> None:
        """Nodes have met after so many sums, and measure from here on."""
        self._blocks = 0
        for touches in self._touches.values():
            touches.forget()
        # Begun again with rows that were summed, the choice waits.
        self._chosen_at = step or min(0, FIRST_CHOICE - self._rechoose)

    def note(self, deltas: Sequence[RowDelta]) -> None:
        for delta in deltas:
            self._touches[delta.table].note(delta.ids)

    def wanted(self, ring: Ring, step: int, blocks: int, top: int) -> dict[Table, IntArray] | None:
        """Ids of all dense rows by table, increasing; None where they stay as they are.

        blocks  that are in sum `step`; top: all words' ids are below it
        """
        self._blocks += blocks
        if self._config.traits.replicas:
            wanted = {table: np.arange(self._rows(table, top)) for table in self._replicas}
        elif step - self._chosen_at > self._rechoose:
            self._chosen_at = step
            wanted = self._measured(ring, top)
        else:
            return None
        same = (np.array_equal(wanted[t], replica.ids) for t, replica in self._replicas.items())
        return None if all(same) else wanted

    def _measured(self, ring: Ring, top: int) -> dict[Table, IntArray]:
        """The choice by the touches of all nodes, which begin again."""
        wanted = {}
        for table, replica in self._replicas.items():
            touches = self._touches[table]
            rows = self._rows(table, top)
            touches.reserve(rows)
            summed = touches.counts[:rows].copy()
            ring.add_up(summed)
            wanted[table] = choose(summed.astype(np.int64), self._blocks, self.least, replica.ids)
            touches.forget()
        self._blocks = 0
        return wanted

    def _rows(self, table: Table, top: int) -> int:
        """All ids of a table are below this number."""
        ids = self._replicas[table].ids
        return self._buckets if table is Table.SUB else max(top, int(ids.max(initial=-1)) + 1)
