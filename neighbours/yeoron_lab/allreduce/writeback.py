"""What the leader of nodes that all-reduce does at the server: bring the replicas, ask for rows."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

import numpy as np

from embedding.exchange.compression.halves import widen
from embedding.exchange.protocol import PullRequest, Push
from embedding.exchange.transport import Transport
from embedding.kernel.errors import UnavailableError
from embedding.kernel.records import FloatArray, IntArray, Table
from yeoron_lab.allreduce.replica import Replica

PULL_BYTES = 32 * 1024 * 1024
FENCE_SECONDS = 60.0
"""How long a new leader waits for the server to have heard the last of the old one."""
NO_WINDOW = -(2**62)
"""Of a block of no window: before all others."""


class WriteBack:
    """Pushes how far replicas moved as ordinary numbered pushes of its node.

    sequence, clock, offset  of the node's last push
    extra     pushes that it made
    rows      that went between it and the server
    done      the node has no block any more: nobody shall wait for it
    """

    def __init__(
        self,
        server: Transport,
        replicas: Mapping[Table, Replica],
        *,
        node: str,
        dim: int,
        sequence: int,
        offset: str,
    ) -> None:
        self.node, self.dim = node, dim
        self.sequence, self.offset = sequence, offset
        self.clock = self.extra = self.rows = 0
        self.done = False
        self._server = server
        self.replicas = replicas

    def bring(self, leaving: Mapping[Table, IntArray] | None = None) -> None:
        """Tell the server how far rows moved; of all, or of those that leave."""
        owed = [
            replica.owed(None if leaving is None else leaving[table])
            for table, replica in self.replicas.items()
        ]
        owed = [delta for delta in owed if len(delta.ids)]
        if not owed:
            return
        self.sequence += 1
        self.extra += 1
        self.rows += sum(len(delta.ids) for delta in owed)
        self._server.push(
            Push(
                node=self.node,
                sequence=self.sequence,
                clock=self.clock,
                deltas=tuple(owed),
                # Of the node's last block: this push brings no text, and a node that is started
                # again reads on behind that block.
                offset=self.offset,
            )
        )

    def ask(self, table: Table, ids: IntArray) -> FloatArray:
        """The server's rows as they are, float32 [n, dim]."""
        rows: FloatArray = np.empty((len(ids), self.dim), dtype=np.float32)
        step = max(1, PULL_BYTES // (4 * self.dim))
        for first in range(0, len(ids), step):
            rows[first : first + step] = self._part(table, ids[first : first + step])
        if self.done and len(ids):  # a pull takes part again: others would wait for this node
            self._server.idle()
        return rows

    def take_over(self, absent: Collection[str]) -> None:
        """Lead from now on: find out what of the replicas the server has.

        absent  names of nodes that do not take part; one of them may have led
        """
        if any(len(replica) for replica in self.replicas.values()):
            self._hear_out(absent)
        for table, replica in self.replicas.items():
            replica.written_back(self.ask(table, replica.ids))

    def _hear_out(self, absent: Collection[str]) -> None:
        """Wait until the server has heard the last of nodes that are gone.

        A push of the former leader may still be on its way. If it came after the server's rows were
        asked for, what it moved would count as not brought, and be brought twice.
        """
        deadline = time.monotonic() + FENCE_SECONDS
        while True:
            nodes = self._server.status()["nodes"]
            heard = [n for n in absent if n in nodes and nodes[n]["state"] == "active"]
            if not heard:
                return
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"node {self.node}: {', '.join(heard)} all-reduce no longer, but the server "
                    f"still hears of them after {FENCE_SECONDS:.0f} s."
                )
            time.sleep(0.05)

    def _part(self, table: Table, ids: IntArray) -> FloatArray:
        pulled = self._server.pull(PullRequest({table: ids}, self.clock))
        # What is brought belongs to the last clock that this node has finished.
        self.clock = max(self.clock, pulled.clock - 1)
        self.rows += len(ids)
        rows = pulled.rows.get(table)
        if rows is None or rows.shape != (len(ids), self.dim):
            raise UnavailableError(f"node {self.node}: the server sent no rows of {table}.")
        return widen(rows)


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
