"""A node whose dense rows live in replicas, summed over all nodes each block.

    gather headers → [bring replicas to the server] → [choose dense rows again] → sum what moved
    → push the rest

Every node makes the same steps in the same order; a node without a block joins with zeros. The
server stays the owner: it gives ids, counts, keeps progress and scores. Node 0 brings it what the
replicas moved by, as ordinary numbered pushes, so that snapshots, checkpoints and recovery know
nothing of replicas. A dense row is in the replicas alone between two such pushes.

A gathered header is a barrier: who sends one has had its last push acknowledged. So what the
leader tells or asks the server after it comes after everybody's last push.

When a node dies, those that are left meet again (`membership.py`), take the replicas of the one
that has the most sums, and go on; so they do when one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.contributors import Contributors
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Ack, PulledRows, PullRequest, Push, VocabularyDelta
from embedding.exchange.topology import TopologyConfig
from embedding.exchange.transport import Transport, TransportMetrics
from embedding.kernel.config import part_of
from embedding.kernel.errors import BrokenRingError
from embedding.kernel.records import FloatArray, IntArray, Table
from yeoron_lab.allreduce.density import DenseChoice
from yeoron_lab.allreduce.meeting import Meeting
from yeoron_lab.allreduce.membership import Membership
from yeoron_lab.allreduce.replica import Replica
from yeoron_lab.allreduce.writeback import NO_WINDOW, WriteBack, WriteBackSchedule
from yeoron_lab.settings import SumSettings


class ReducingTransport:
    """A Transport of dense rows by all-reduce, and of the others by the transport below it.

    server   the transport below; it is closed with this one
    dim      columns of a row; buckets: rows of n-grams, 0 for none
    sequence, offset  the last push of this node that the server has taken, and its offset
    tokens   of an offset: how much of the node's share it is behind
    half     deltas for the server travel as float16
    least    hybrid: density from which on a row is dense
    """

    def __init__(
        self,
        server: Transport,
        meeting: Meeting,
        config: TopologyConfig,
        *,
        dim: int,
        tokens: Callable[[str], int],
        buckets: int = 0,
        sequence: int = 0,
        offset: str = "",
        half: bool = True,
        least: float = 1.0,
    ) -> None:
        self.server, self.config, self.node = server, config, meeting.name
        self.metrics = TransportMetrics()
        self.summed_rows = 0
        tables = Table if buckets else (Table.IN, Table.OUT)
        self.replicas = {table: Replica(table, dim, tells=False) for table in tables}
        self.write_back = WriteBack(
            server,
            self.replicas,
            node=meeting.name,
            dim=dim,
            sequence=sequence,
            offset=offset,
        )
        self._half, self._tokens = half, tokens
        self._active = 1
        self._choice = DenseChoice(config, self.replicas, buckets=buckets, least=least)
        self.members = Membership(meeting, self.write_back, tokens)
        self._schedule = self._begun()

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        return self.server.admit(words, counts, contributors)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        return self.server.vocabulary(since)

    def idle(self) -> None:
        self.server.idle()

    def status(self) -> dict[str, Any]:
        return self.server.status()

    def pull(self, request: PullRequest) -> PulledRows:
        """Dense rows from the replicas, the others from the server, which is asked in any case.

        It keeps the clock, and scores pairs on its own tables: as of the last time that the
        replicas were brought to it.
        """
        asked = request.ids
        offsets = {table: self.replicas[table].places(ids) for table, ids in asked.items()}
        rest = {table: asked[table][at < 0] for table, at in offsets.items()}
        lacking = {table: ids for table, ids in rest.items() if len(ids)}
        pulled = self.server.pull(PullRequest(lacking, request.clock, request.score))
        whole = {
            table: self.replicas[table].together(at, pulled.rows.get(table))
            for table, at in offsets.items()
        }
        self.metrics.server_rows += sum(len(ids) for ids in rest.values())
        return replace(
            pulled,
            rows=whole,
            # Nothing of this node is outstanding: a push ends with the sum.
            sequence=self.write_back.sequence - self.write_back.extra,
        )

    def push(self, push: Push) -> Ack:
        """One block, together with everybody else's; the rest goes to the server."""
        self.metrics.block(push.deltas)
        self._choice.note(push.deltas)
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
        self.members.conclude()

    def figures(self) -> dict[str, Any]:
        """Rows and bytes by way, density, how many rows are dense, who is left."""
        metrics, members = self.metrics, self.members
        return {
            "kind": self.config.kind,
            "rows": {
                "server": metrics.server_rows + self.write_back.rows,
                "allreduce": metrics.reduced_rows,
            },
            "bytes": {"allreduce": members.bytes_sent},
            "summed_rows": self.summed_rows,
            "dense_rows": {str(table): len(replica) for table, replica in self.replicas.items()},
            "density": metrics.density(),
            "dense_share": None if self.config.traits.replicas else self._choice.least,
            "rounds": members.stand.step,
            "waited_s": round(members.waited_s, 3),
            "nodes": members.ring.size,
            "regrouped": members.regrouped,
            "lost_tokens": members.lost_tokens,
            "from_server": members.from_server,
        }

    def close(self) -> None:
        try:
            self.members.leave()
        finally:
            self.server.close()

    # -- sums -------------------------------------------------------------------------------

    def _begun(self) -> WriteBackSchedule:
        """The nodes have met: what is counted between them begins with them."""
        step = self.members.stand.step
        self._choice.begin(step)
        blocks = part_of(self.config, SumSettings).write_back_blocks
        return WriteBackSchedule(blocks, step=step, nodes=self.members.ring.size)

    def _regroup(self) -> None:
        self.members.regroup()
        self._schedule = self._begun()

    def _summed(
        self, deltas: Sequence[RowDelta], window: int, behind: int
    ) -> tuple[int, tuple[RowDelta, ...]]:
        """Add a block to the sums, once; `behind`: tokens of this node's share up to its end.

        Returns how many nodes had one, and the deltas that go to the server.
        """
        while not self.members.is_summed(behind):
            try:
                return self._round(deltas, window, behind)
            except BrokenRingError:
                self._regroup()
        # The sum was complete on another node, or in this node's incarnation before.
        if not self.members.died_with_another(behind):
            return self._active, tuple(self._parted(deltas)[1])
        # That node has ended, and with it is gone which rows of this block it had summed.
        if not self.config.traits.replicas:
            self.members.lost_tokens += behind - self._tokens(self.write_back.offset)
        return self._active, ()

    def _ended(self) -> bool:
        """Join with nothing; True when nobody had a block, and the server has all."""
        try:
            if self._round(None, NO_WINDOW, 0)[0]:
                return False
            if self.members.ring.is_root:
                self.write_back.bring()
            self.members.barrier()
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
        words = [delta for delta in deltas or () if delta.table is not Table.SUB]
        top = max((int(delta.ids.max(initial=-1)) + 1 for delta in words), default=0)
        heads = self.members.gather([deltas is not None, top, window, behind])
        # Every node reads the same wish in the same gather, so all leave the ring before any sums.
        # A leader that left alone would have its peers wait for its part of the sum.
        if heads[:, 4].any():
            raise BrokenRingError("a node wants to come.")
        self._active = int(heads[:, 0].sum())
        if not self._active:
            return 0, ()
        step = self.members.stand.step + 1
        if self._schedule.due(step, heads[:, 2]):
            if self.members.ring.is_root:
                self.write_back.bring()
            # Nobody pushes into the new window before the server has the tables of the old one.
            self.members.barrier()
        self._choose(step, int(heads[:, 1].max()))
        rest = self._sum(deltas or ())
        # Behind the sum: a node that dies within it leaves the others where they stood, and the
        # block comes again. Had it counted before, `_summed` would take the block for summed.
        self.members.summed(heads[:, 3])
        return self._active, rest

    def _choose(self, step: int, top: int) -> None:
        """Hold the rows that are dense from now on; those that leave are brought first."""
        wanted = self._choice.wanted(self.members.ring, step, self._active, top)
        if wanted is None:
            return
        leaving = {
            table: np.setdiff1d(replica.ids, wanted[table], assume_unique=True)
            for table, replica in self.replicas.items()
        }
        if self.members.ring.is_root:
            self.write_back.bring(leaving)
        for table, replica in self.replicas.items():
            fresh = wanted[table][replica.places(wanted[table]) < 0]
            replica.change(wanted[table], self._from_server(table, fresh))
        # Rows that left are the server's again, from the moment on that it has them.
        self.members.barrier()

    def _from_server(self, table: Table, ids: IntArray) -> FloatArray:
        """The server's rows, asked for by the leader alone."""
        ring = self.members.ring
        rows: FloatArray = np.empty((len(ids), self.write_back.dim), dtype=np.float32)
        if ring.is_root:
            rows = self.write_back.ask(table, ids)
        ring.from_leader(rows)
        return rows

    def _sum(self, deltas: Sequence[RowDelta]) -> tuple[RowDelta, ...]:
        """Add up the dense rows on all nodes; returns the rows that are not dense.

        Sums are taken into the replicas once all are there, so that a node has all or none.
        """
        dense, rest = self._parted(deltas)
        moved = {}
        for table, replica in self.replicas.items():
            if len(replica):
                moved[table] = replica.spread([each for each in dense if each.table is table])
                self.members.ring.add_up(moved[table])
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
                values = delta.values[~here]
                sent = narrow(widen(values)) if self._half else values
                rest.append(RowDelta(delta.table, delta.ids[~here], sent))
        return dense, rest
