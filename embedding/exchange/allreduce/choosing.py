"""Which rows are dense, chosen on all nodes alike, and when it is time to bring them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from embedding.exchange.allreduce.density import Touches, choose
from embedding.exchange.allreduce.replica import Replica
from embedding.exchange.allreduce.ring import Ring
from embedding.exchange.payload import RowDelta
from embedding.exchange.topology import TopologyConfig
from embedding.kernel.records import IntArray, Table

NO_WINDOW = -(2**62)
FIRST_CHOICE = 4
"""hybrid: blocks measured before the first choice, when less than `rechoose_blocks`."""


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
        self._touches = {table: Touches() for table in replicas}
        self._buckets = buckets
        self._blocks = self._chosen_at = 0

    def begin(self, step: int) -> None:
        """Nodes have met after so many sums, and measure from here on."""
        self._blocks = 0
        for touches in self._touches.values():
            touches.forget()
        # Begun again with rows that were summed, the choice waits.
        self._chosen_at = step or min(0, FIRST_CHOICE - self._config.rechoose_blocks)

    def note(self, deltas: Sequence[RowDelta]) -> None:
        """A block of this node moved these rows."""
        for delta in deltas:
            self._touches[delta.table].note(delta.ids)

    def wanted(self, ring: Ring, step: int, blocks: int, top: int) -> dict[Table, IntArray] | None:
        """Ids of all dense rows by table, increasing; None where they stay as they are.

        blocks  that are in sum `step`; top: all words' ids are below it
        """
        self._blocks += blocks
        if self._config.traits.replicas:
            wanted = {table: np.arange(self._rows(table, top)) for table in self._replicas}
        elif step - self._chosen_at > self._config.rechoose_blocks:
            self._chosen_at = step
            wanted = self._measured(ring, top)
        else:
            return None
        same = (np.array_equal(wanted[t], held.ids) for t, held in self._replicas.items())
        return None if all(same) else wanted

    def _measured(self, ring: Ring, top: int) -> dict[Table, IntArray]:
        """The choice by the touches of all nodes, which begin again."""
        wanted = {}
        for table, held in self._replicas.items():
            touches = self._touches[table]
            rows = self._rows(table, top)
            touches.reserve(rows)
            summed = touches.counts[:rows].copy()
            ring.add_up(summed)
            wanted[table] = choose(summed.astype(np.int64), self._blocks, self.least, held.ids)
            touches.forget()
        self._blocks = 0
        return wanted

    def _rows(self, table: Table, top: int) -> int:
        """All ids of a table are below this number."""
        held = self._replicas[table].ids
        return self._buckets if table is Table.SUB else max(top, int(held.max(initial=-1)) + 1)


class WriteBackSchedule:
    """When the replicas are brought: now and then, and before a node tells of a window that is new
    to it, for the server may cut a window when the last node has left it, whichever that is.

    every  sums between two times
    """

    def __init__(self, every: int, *, step: int, nodes: int) -> None:
        self._every = every
        # Begun again with rows that were summed, the server is told soon.
        self._last = step - (every if step else 0)
        self._windows = np.full(nodes, NO_WINDOW, dtype=np.int64)

    def due(self, step: int, windows: IntArray) -> bool:
        """Whether to bring them before sum `step`; windows: int64 [nodes], of each node's block."""
        crossing = bool(((windows > self._windows) & (self._windows > NO_WINDOW)).any())
        self._windows = np.maximum(windows, self._windows)
        if not crossing and step - self._last < self._every:
            return False
        self._last = step
        return True
