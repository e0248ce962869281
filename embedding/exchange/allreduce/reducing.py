"""A node whose dense rows live in replicas, summed over all nodes each block.

    gather headers → [bring replicas to the server] → [choose dense rows anew] → sum what moved
    → push the rest

Every node makes the same steps in the same order; a node without a block joins with zeros. The
server stays the owner: it gives ids, counts, keeps progress and scores. Node 0 brings it what the
replicas moved by, as ordinary numbered pushes, so that snapshots, checkpoints and recovery know
nothing of replicas. A dense row is in the replicas alone between two such pushes.

A gathered header is a barrier: who sends one has had its last push acknowledged. So what the
leader tells or asks the server after it comes after everybody's last push.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.errors import UnavailableError
from embedding.exchange.allreduce.density import Touches, choose
from embedding.exchange.allreduce.replica import Replica
from embedding.exchange.allreduce.ring import Ring
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Ack, Push, Rows
from embedding.exchange.route import Route, Server
from embedding.exchange.topology import TopologyConfig
from embedding.records import FloatArray, HalfArray, IntArray, ScorePairs, Table

NO_WINDOW = -(2**62)
PULL_BYTES = 32 * 1024 * 1024
FIRST_CHOICE = 4
"""hybrid: blocks measured before the first choice, when less than `rechoose_blocks`."""
NONE = np.empty(0, dtype=np.int64)


class ReducingRoute(Route):
    """Routes dense rows by all-reduce and the others by the server; one thread uses it.

    dim      columns of a row
    buckets  rows of n-grams, 0 for none
    half     deltas for the server travel as float16
    least    hybrid: density from which on a row is dense
    sequence the last push of this node that the server has taken
    """

    def __init__(
        self,
        server: Server,
        ring: Ring,
        config: TopologyConfig,
        *,
        node: str,
        dim: int,
        buckets: int = 0,
        half: bool = True,
        least: float = 1.0,
        sequence: int = 0,
    ) -> None:
        super().__init__(server)
        self.ring, self.config = ring, config
        self.node, self.dim, self.buckets = node, dim, buckets
        self.least = least
        self.rounds = 0
        self.summed_rows = 0
        self.waited_s = 0.0
        tables = Table if buckets else (Table.IN, Table.OUT)
        self.replicas = {table: Replica(table, dim, tells=ring.leads) for table in tables}
        self._half = half
        self._windows = np.full(ring.size, NO_WINDOW, dtype=np.int64)
        self._chosen_at = min(0, FIRST_CHOICE - config.rechoose_blocks)
        self._blocks = 0
        self._told = 0
        self._sequence = sequence
        self._extra = 0
        self._clock = 0
        self._place = ""
        self._done = False

    def pull(
        self,
        vectors: IntArray,
        contexts: IntArray,
        *,
        clock: int,
        score: ScorePairs | None = None,
        grams: IntArray | None = None,
    ) -> Rows:
        """Dense rows from the replicas, the others from the server, which is asked in any case.

        It keeps the clock, and scores pairs on its own tables: as of the last time that the
        replicas were brought to it.
        """
        asked = {
            Table.IN: vectors,
            Table.OUT: contexts,
            Table.SUB: NONE if grams is None else grams,
        }
        places = {
            table: self.replicas[table].places(ids)
            for table, ids in asked.items()
            if table in self.replicas
        }
        rest = {table: asked[table][at < 0] for table, at in places.items()}
        sub = rest.get(Table.SUB, NONE)
        pulled = self.server.pull(
            rest[Table.IN],
            rest[Table.OUT],
            clock=clock,
            score=score,
            grams=sub if len(sub) else None,
        )
        found = {Table.IN: pulled.vectors, Table.OUT: pulled.contexts, Table.SUB: pulled.grams}
        whole = {
            table: self._together(self.replicas[table], at, found[table])
            for table, at in places.items()
        }
        self.ways.server_rows += sum(len(ids) for ids in rest.values())
        return replace(
            pulled,
            vectors=whole[Table.IN],
            contexts=whole[Table.OUT],
            grams=None if grams is None else whole[Table.SUB],
            # Nothing of this node is outstanding: a push ends with the sum.
            sequence=self._sequence - self._extra,
        )

    def push(self, push: Push) -> Ack:
        """One block, together with everybody else's; the rest goes to the server."""
        self.ways.block(push.deltas)
        window = max((each.window for each in push.progress), default=NO_WINDOW)
        active, rest = self._round(push.deltas, window)
        self._sequence += 1
        self._clock, self._place = push.clock, push.place
        sent = replace(push, sequence=self._sequence, deltas=rest)
        self.ways.server_rows += sum(len(delta.ids) for delta in rest)
        ack = self.server.push(sent)
        # Nodes in step: as many deltas meet as are summed, whatever the policy says of others.
        pace = replace(ack.pace, pooled=active)
        return replace(ack, sequence=push.sequence, ahead=False, active=active, pace=pace)

    def finish(self) -> None:
        """Join with nothing until nobody has a block; then the leader brings the tables."""
        self._done = True
        self.server.idle()
        active = 1
        while active:
            active, _ = self._round(None, NO_WINDOW)
        if self.ring.leads:
            self._bring(None)
        self.ring.gather(np.zeros(1, dtype=np.int64))

    def figures(self) -> dict[str, Any]:
        """Rows and bytes by way, density, how many rows are dense."""
        return {
            "kind": self.config.kind,
            "rows": {"server": self.ways.server_rows, "allreduce": self.ways.reduced_rows},
            "bytes": {"allreduce": self.ring.bytes_sent},
            "summed_rows": self.summed_rows,
            "dense_rows": {str(table): len(held) for table, held in self.replicas.items()},
            "density": self.ways.density(),
            "dense_share": self.least if self.config.kind == "hybrid" else None,
            "rounds": self.rounds,
            "waited_s": round(self.waited_s, 3),
        }

    def close(self) -> None:
        """Let the other nodes go."""
        self.ring.close()

    def _round(
        self, deltas: Sequence[RowDelta] | None, window: int
    ) -> tuple[int, tuple[RowDelta, ...]]:
        """One sum over all nodes; None: this node has no block.

        Returns how many nodes had one, and the deltas that go to the server. When nobody had one
        nothing was summed.
        """
        began = time.monotonic()
        top = max((int(d.ids.max(initial=-1)) + 1 for d in _words(deltas)), default=0)
        header = np.asarray([deltas is not None, top, window], dtype=np.int64)
        heads = self.ring.gather(header)
        self.waited_s += time.monotonic() - began
        active = int(heads[:, 0].sum())
        if not active:
            return 0, ()
        self.rounds += 1
        self._settle(heads[:, 2])
        self._blocks += active
        self._choose(int(heads[:, 1].max()))
        return active, self._sum(deltas or ())

    def _settle(self, windows: IntArray) -> None:
        """Bring the tables now and then, and before a node tells of a window that is new to it.

        The server may cut a window when the last node has left it, whichever that is.

        windows  int64 [nodes], the window of each node's block
        """
        crossing = bool(((windows > self._windows) & (self._windows > NO_WINDOW)).any())
        self._windows = np.maximum(windows, self._windows)
        if crossing or self.rounds - self._told >= self.config.settle_blocks:
            self._told = self.rounds
            if self.ring.leads:
                self._bring(None)
            self.ring.gather(np.zeros(1, dtype=np.int64))

    def _bring(self, leaving: dict[Table, IntArray] | None) -> None:
        """The leader tells the server how far rows moved; of all, or of those that leave."""
        owed = [
            held.owed(None if leaving is None else leaving[table])
            for table, held in self.replicas.items()
        ]
        owed = [delta for delta in owed if len(delta.ids)]
        if not owed:
            return
        self._sequence += 1
        self._extra += 1
        self.ways.server_rows += sum(len(delta.ids) for delta in owed)
        self.server.push(
            Push(
                node=self.node,
                sequence=self._sequence,
                clock=self._clock,
                deltas=tuple(owed),
                place=self._place,
            )
        )

    def _choose(self, top: int) -> None:
        """Which rows are dense from now on: all, or those that were touched often enough."""
        if self.config.kind == "allreduce":
            wanted = {
                table: np.arange(self.buckets if table is Table.SUB else max(top, len(held)))
                for table, held in self.replicas.items()
            }
        elif self.rounds - self._chosen_at > self.config.rechoose_blocks:
            self._chosen_at = self.rounds
            wanted = self._measured(top)
        else:
            return
        if all(np.array_equal(wanted[table], held.ids) for table, held in self.replicas.items()):
            return
        leaving = {
            table: np.setdiff1d(held.ids, wanted[table], assume_unique=True)
            for table, held in self.replicas.items()
        }
        if self.ring.leads:
            self._bring(leaving)
        for table, held in self.replicas.items():
            fresh = wanted[table][held.places(wanted[table]) < 0]
            held.change(wanted[table], self._from_server(table, fresh))
        # Rows that left are the server's again, from the moment on that it has them.
        self.ring.gather(np.zeros(1, dtype=np.int64))

    def _measured(self, top: int) -> dict[Table, IntArray]:
        """The choice by the touches of all nodes, which begin anew."""
        wanted = {}
        for table, held in self.replicas.items():
            touches = self.ways.touches.setdefault(table, Touches())
            rows = (
                self.buckets if table is Table.SUB else max(top, int(held.ids.max(initial=-1)) + 1)
            )
            touches.reserve(rows)
            summed = touches.counts[:rows].copy()
            self.ring.add_up(summed)
            wanted[table] = choose(summed.astype(np.int64), self._blocks, self.least, held.ids)
            touches.forget()
        self._blocks = 0
        return wanted

    def _from_server(self, table: Table, ids: IntArray) -> FloatArray:
        """The server's rows, asked for by the leader alone."""
        rows: FloatArray = np.empty((len(ids), self.dim), dtype=np.float32)
        if self.ring.leads:
            step = max(1, PULL_BYTES // (4 * self.dim))
            for first in range(0, len(ids), step):
                rows[first : first + step] = self._part(table, ids[first : first + step])
            if self._done:  # a pull takes part again, and then others would wait for this node
                self.server.idle()
        self.ring.from_leader(rows)
        return rows

    def _part(self, table: Table, ids: IntArray) -> FloatArray:
        pulled = self.server.pull(
            ids if table is Table.IN else NONE,
            ids if table is Table.OUT else NONE,
            clock=self._clock,
            grams=ids if table is Table.SUB else None,
        )
        self.ways.server_rows += len(ids)
        found = {Table.IN: pulled.vectors, Table.OUT: pulled.contexts, Table.SUB: pulled.grams}
        rows = found[table]
        if rows is None or rows.shape != (len(ids), self.dim):
            raise UnavailableError(f"node {self.node}: the server sent no rows of {table}.")
        return widen(rows)

    def _sum(self, deltas: Sequence[RowDelta]) -> tuple[RowDelta, ...]:
        """Add up the dense rows on all nodes; returns the rows that are not dense."""
        rest = []
        for table, held in self.replicas.items():
            dense = []
            for delta in (each for each in deltas if each.table is table):
                here = held.places(delta.ids) >= 0
                dense.append(RowDelta(table, delta.ids[here], delta.values[here]))
                self.ways.reduced_rows += int(here.sum())
                if not here.all():
                    rest.append(self._for_server(table, delta.ids[~here], delta.values[~here]))
            if len(held):
                moved = held.spread(dense)
                self.ring.add_up(moved)
                held.add(moved)
                self.summed_rows += len(held)
        return tuple(rest)

    def _for_server(self, table: Table, ids: IntArray, values: FloatArray | HalfArray) -> RowDelta:
        return RowDelta(table, ids, narrow(widen(values)) if self._half else values)

    def _together(
        self, held: Replica, places: IntArray, pulled: FloatArray | HalfArray | None
    ) -> FloatArray:
        """Held rows and pulled ones, float32, in the order in which they were asked for."""
        rows: FloatArray = np.empty((len(places), self.dim), dtype=np.float32)
        here = places >= 0
        rows[here] = held.rows[places[here]]
        if pulled is not None:
            rows[~here] = widen(pulled)
        return rows


def _words(deltas: Sequence[RowDelta] | None) -> list[RowDelta]:
    return [delta for delta in deltas or () if delta.table is not Table.SUB]
