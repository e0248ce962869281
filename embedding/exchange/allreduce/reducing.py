"""A node whose dense rows live in replicas, summed over all nodes each block.

    gather headers → [bring replicas to the server] → [choose dense rows again] → sum what moved
    → push the rest

Every node makes the same steps in the same order; a node without a block joins with zeros. The
server stays the owner: it gives ids, counts, keeps progress and scores. Node 0 brings it what the
replicas moved by, as ordinary numbered pushes, so that snapshots, checkpoints and recovery know
nothing of replicas. A dense row is in the replicas alone between two such pushes.

A gathered header is a barrier: who sends one has had its last push acknowledged. So what the
leader tells or asks the server after it comes after everybody's last push.

When a node dies, those that are left meet again (`meeting.py`), take the replicas of the one that
has the most sums, and go on; so they do when one comes. A sum is in the replicas of a node whole or
not at all, and no node can be two ahead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.exchange.allreduce.agreeing import Standpoint, agree
from embedding.exchange.allreduce.density import Touches, choose
from embedding.exchange.allreduce.meeting import FRESH, Meeting
from embedding.exchange.allreduce.replica import Replica
from embedding.exchange.allreduce.ring import Ring
from embedding.exchange.allreduce.writeback import NONE, WriteBack
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.contributors import Contributors
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Ack, PulledRows, PullRequest, Push, VocabularyDelta
from embedding.exchange.topology import TopologyConfig
from embedding.exchange.transport import Transport, TransportMetrics
from embedding.kernel.errors import BrokenRingError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table

NO_WINDOW = -(2**62)
_MOST_TRIES = 20
"""Meetings in a row that break before a ring is there, after which a node gives up."""
FIRST_CHOICE = 4
"""hybrid: blocks measured before the first choice, when less than `rechoose_blocks`."""


class ReducingTransport:
    """A Transport of dense rows by all-reduce, and of the others by the transport below it.

    server   the transport below; it is closed with this one
    names    all nodes of the training
    dim      columns of a row
    buckets  rows of n-grams, 0 for none
    half     deltas for the server travel as float16
    least    hybrid: density from which on a row is dense
    sequence, place  the last push of this node that the server has taken, and its place
    tokens   of a place: how much of the node's share it is behind
    """

    def __init__(
        self,
        server: Transport,
        meeting: Meeting,
        names: Sequence[str],
        config: TopologyConfig,
        *,
        dim: int,
        tokens: Callable[[str], int],
        buckets: int = 0,
        half: bool = True,
        least: float = 1.0,
        sequence: int = 0,
        offset: str = "",
    ) -> None:
        self.server = server
        self.metrics = TransportMetrics()
        self.meeting, self.config, self.names = meeting, config, tuple(names)
        self.node, self.dim, self.buckets = meeting.name, dim, buckets
        self.least = least
        self.rounds = 0
        self.summed_rows = 0
        self.waited_s = 0.0
        tables = Table if buckets else (Table.IN, Table.OUT)
        self.replicas = {table: Replica(table, dim, tells=False) for table in tables}
        self.regrouped = 0
        self.lost_tokens = 0
        self.from_server = 0
        self._half = half
        self._own = self.names.index(meeting.name)
        self._tokens = tokens
        self._stand = Standpoint(FRESH, np.zeros(len(self.names), dtype=np.int64))
        self._tells = False
        self._active = 1
        self._ended_with = 0  # tokens of this node that others had in sums when they ended
        self.write_back = WriteBack(
            server, self.replicas, node=meeting.name, dim=dim, sequence=sequence, offset=offset
        )
        self._sent = 0
        self.ring = self._meet()

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        """See Transport."""
        return self.server.admit(words, counts, contributors)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        """See Transport."""
        return self.server.vocabulary(since)

    def idle(self) -> None:
        """See Transport."""
        self.server.idle()

    def status(self) -> dict[str, Any]:
        """See Transport."""
        return self.server.status()

    def pull(self, request: PullRequest) -> PulledRows:
        """Dense rows from the replicas, the others from the server, which is asked in any case.

        It keeps the clock, and scores pairs on its own tables: as of the last time that the
        replicas were brought to it.
        """
        none = dict.fromkeys(self.replicas, NONE)
        asked = {t: ids for t, ids in (none | request.by_table()).items() if t in self.replicas}
        places = {table: self.replicas[table].places(ids) for table, ids in asked.items()}
        rest = {table: asked[table][at < 0] for table, at in places.items()}
        sub = rest.get(Table.SUB, NONE)
        pulled = self.server.pull(
            replace(
                request,
                vectors=rest[Table.IN],
                contexts=rest[Table.OUT],
                grams=sub if len(sub) else None,
            )
        )
        found = {Table.IN: pulled.vectors, Table.OUT: pulled.contexts, Table.SUB: pulled.grams}
        whole = {
            table: self.replicas[table].together(at, found[table]) for table, at in places.items()
        }
        self.metrics.server_rows += sum(len(ids) for ids in rest.values())
        return replace(
            pulled,
            vectors=whole[Table.IN],
            contexts=whole[Table.OUT],
            grams=None if request.grams is None else whole[Table.SUB],
            # Nothing of this node is outstanding: a push ends with the sum.
            sequence=self.write_back.sequence - self.write_back.extra,
        )

    def push(self, push: Push) -> Ack:
        """One block, together with everybody else's; the rest goes to the server."""
        self.metrics.block(push.deltas)
        window = max((each.window for each in push.progress), default=NO_WINDOW)
        active, rest = self._summed(push.deltas, window, self._tokens(push.offset))
        write_back = self.write_back
        write_back.sequence += 1
        write_back.clock, write_back.offset = push.clock, push.offset
        sent = replace(push, sequence=write_back.sequence, deltas=rest)
        self.metrics.server_rows += sum(len(delta.ids) for delta in rest)
        ack = self.server.push(sent)
        # Nodes in step: as many deltas meet as are summed, whatever the policy says of others.
        pace = replace(ack.pace, pooled=active)
        return replace(ack, sequence=push.sequence, ahead=False, active=active, pace=pace)

    def finish(self) -> None:
        """Join with nothing until nobody has a block; then the leader brings the tables."""
        self.write_back.done = True
        self.server.idle()
        while not self._ended():
            pass
        self.meeting.conclude(self._stand.summed.tolist())

    def figures(self) -> dict[str, Any]:
        """Rows and bytes by way, density, how many rows are dense, who is left."""
        metrics = self.metrics
        return {
            "kind": self.config.kind,
            "rows": {
                "server": metrics.server_rows + self.write_back.rows,
                "allreduce": metrics.reduced_rows,
            },
            "bytes": {"allreduce": self._sent + self.ring.bytes_sent},
            "summed_rows": self.summed_rows,
            "dense_rows": {str(table): len(held) for table, held in self.replicas.items()},
            "density": metrics.density(),
            "dense_share": self.least if self.config.kind == "hybrid" else None,
            "rounds": self.rounds,
            "waited_s": round(self.waited_s, 3),
            "nodes": self.ring.size,
            "regrouped": self.regrouped,
            "lost_tokens": self.lost_tokens,
            "from_server": self.from_server,
        }

    def close(self) -> None:
        """See Transport."""
        try:
            self.meeting.leave()
            self.ring.close()
        finally:
            self.server.close()

    # -- who takes part ---------------------------------------------------------------------

    def _meet(self) -> Ring:
        """Join the others, at the start or again, and stand where they stand."""
        failed = 0
        while True:
            try:
                ring = self.meeting.form(self._stand.step, tells=self._tells)
            except BrokenRingError:  # a peer died while they joined hands
                failed += 1
                if failed >= _MOST_TRIES:
                    raise
                continue
            try:
                self._agree(ring)
            except BrokenRingError:
                self._sent += ring.bytes_sent
                ring.close()
                continue
            return ring

    def _regroup(self) -> None:
        began = time.monotonic()
        self.regrouped += 1
        self._sent += self.ring.bytes_sent
        self.ring.close()
        self.ring = self._meet()
        self.waited_s += time.monotonic() - began

    def _agree(self, ring: Ring) -> None:
        learnt = np.zeros(len(self.names), dtype=np.int64)
        learnt[self._own] = self._tokens(self.write_back.offset)
        fresh = self.meeting.members[0].step == FRESH
        if fresh:
            concluded = self.meeting.concluded(len(self.names))
            self._ended_with = int(concluded[self._own])
            learnt = np.maximum(learnt, concluded)
        stand, lost = agree(ring, self.replicas, self._stand, learnt)
        # Who led before and does so no more has replicas that another one brings now; two that
        # bring the same movement would count it twice.
        self._tells = self._tells and ring.is_root
        if ring.is_root and not self._tells:
            here = {member.name for member in self.meeting.members}
            self.write_back.take_over(set(self.names) - here)
            self._tells = True
        self._stand = stand
        self.lost_tokens += lost
        self.from_server += bool(fresh and stand.summed.any())
        self.rounds = stand.step
        self._windows = np.full(ring.size, NO_WINDOW, dtype=np.int64)
        self._blocks = 0
        for touches in self.metrics.touches.values():
            touches.forget()
        # Begun again with rows that were summed, the server is told soon, and the choice waits.
        self._told = self.rounds - (self.config.write_back_blocks if self.rounds else 0)
        self._chosen_at = self.rounds or min(0, FIRST_CHOICE - self.config.rechoose_blocks)

    # -- sums -------------------------------------------------------------------------------

    def _summed(
        self, deltas: Sequence[RowDelta], window: int, behind: int
    ) -> tuple[int, tuple[RowDelta, ...]]:
        """Add a block to the sums, once; `behind`: tokens of this node's share up to its end.

        Returns how many nodes had one, and the deltas that go to the server.
        """
        while behind > self._stand.summed[self._own]:
            try:
                return self._round(deltas, window, behind)
            except BrokenRingError:
                self._regroup()
        # The sum was complete on another node, or in this node's incarnation before.
        if behind > self._ended_with:
            return self._active, tuple(self._parted(deltas)[1])
        # That node has ended, and with it is gone which rows of this block it had summed.
        if self.config.kind == "hybrid":
            self.lost_tokens += behind - self._tokens(self.write_back.offset)
        return self._active, ()

    def _ended(self) -> bool:
        """Join with nothing; True when nobody had a block, and the server has all."""
        try:
            if self._round(None, NO_WINDOW, 0)[0]:
                return False
            if self.ring.is_root:
                self.write_back.bring()
            self.ring.gather(np.zeros(1, dtype=np.int64))
        except BrokenRingError:
            self._regroup()
            return False
        return True

    def _round(
        self, deltas: Sequence[RowDelta] | None, window: int, behind: int
    ) -> tuple[int, tuple[RowDelta, ...]]:
        """One sum over all nodes; None: this node has no block.

        Returns as `_summed`. When nobody had one nothing was summed. Raises BrokenRingError, and
        nothing is summed here, when a node is gone or one wants to come.
        """
        began = time.monotonic()
        top = max((int(d.ids.max(initial=-1)) + 1 for d in _words(deltas)), default=0)
        wished = self.ring.is_root and self.meeting.wished()
        header = np.asarray([deltas is not None, top, window, behind, wished], dtype=np.int64)
        heads = self.ring.gather(header)
        self.waited_s += time.monotonic() - began
        # Every node reads the same wish in the same gather, so all leave the ring before any sums.
        # A leader that left alone would have its peers wait for its part of the sum.
        if heads[:, 4].any():
            raise BrokenRingError("a node wants to come.")
        self._active = int(heads[:, 0].sum())
        if not self._active:
            return 0, ()
        self.rounds += 1
        self._settle(heads[:, 2])
        self._blocks += self._active
        self._choose(int(heads[:, 1].max()))
        rest = self._sum(deltas or ())
        # Behind the sum: a node that dies within it leaves the others where they stood, and the
        # block comes again. Had it counted before, `_summed` would take the block for summed.
        for member, tokens in zip(self.meeting.members, heads[:, 3].tolist(), strict=True):
            at = self.names.index(member.name)
            self._stand.summed[at] = max(self._stand.summed[at], tokens)
        self._stand.step = self.rounds
        return self._active, rest

    def _settle(self, windows: IntArray) -> None:
        """Bring the tables now and then, and before a node tells of a window that is new to it.

        The server may cut a window when the last node has left it, whichever that is.

        windows  int64 [nodes], the window of each node's block
        """
        crossing = bool(((windows > self._windows) & (self._windows > NO_WINDOW)).any())
        self._windows = np.maximum(windows, self._windows)
        if crossing or self.rounds - self._told >= self.config.write_back_blocks:
            self._told = self.rounds
            if self.ring.is_root:
                self.write_back.bring()
            # Nobody pushes into the new window before the server has the tables of the old one.
            self.ring.gather(np.zeros(1, dtype=np.int64))

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
        if self.ring.is_root:
            self.write_back.bring(leaving)
        for table, held in self.replicas.items():
            fresh = wanted[table][held.places(wanted[table]) < 0]
            held.change(wanted[table], self._from_server(table, fresh))
        # Rows that left are the server's again, from the moment on that it has them.
        self.ring.gather(np.zeros(1, dtype=np.int64))

    def _measured(self, top: int) -> dict[Table, IntArray]:
        """The choice by the touches of all nodes, which begin again."""
        wanted = {}
        for table, held in self.replicas.items():
            touches = self.metrics.touches.setdefault(table, Touches())
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
        if self.ring.is_root:
            rows = self.write_back.ask(table, ids)
        self.ring.from_leader(rows)
        return rows

    def _sum(self, deltas: Sequence[RowDelta]) -> tuple[RowDelta, ...]:
        """Add up the dense rows on all nodes; returns the rows that are not dense.

        Sums are taken into the replicas once all are there, so that a node has all or none.
        """
        dense, rest = self._parted(deltas)
        moved = {}
        for table, held in self.replicas.items():
            if len(held):
                moved[table] = held.spread([each for each in dense if each.table is table])
                self.ring.add_up(moved[table])
        for table, sums in moved.items():
            self.replicas[table].add(sums)
            self.summed_rows += len(sums)
        self.metrics.reduced_rows += sum(len(delta.ids) for delta in dense)
        return tuple(rest)

    def _parted(self, deltas: Sequence[RowDelta]) -> tuple[list[RowDelta], list[RowDelta]]:
        """The rows that are dense, and those for the server."""
        dense, rest = [], []
        for delta in deltas:
            here = self.replicas[delta.table].places(delta.ids) >= 0
            dense.append(RowDelta(delta.table, delta.ids[here], delta.values[here]))
            if not here.all():
                rest.append(self._for_server(delta.table, delta.ids[~here], delta.values[~here]))
        return dense, rest

    def _for_server(self, table: Table, ids: IntArray, values: FloatArray | HalfArray) -> RowDelta:
        return RowDelta(table, ids, narrow(widen(values)) if self._half else values)


def _words(deltas: Sequence[RowDelta] | None) -> list[RowDelta]:
    return [delta for delta in deltas or () if delta.table is not Table.SUB]
