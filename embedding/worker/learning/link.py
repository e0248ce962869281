"""A node's side of the exchange: it pulls rows, pushes work, and knows its last push."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from embedding.exchange.compression.halves import widen
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Ack, PulledRows, PullRequest
from embedding.exchange.transport import Transport
from embedding.kernel.errors import AheadError
from embedding.kernel.records import FloatArray, IntArray, ScorePairs, Table
from embedding.worker.learning.nodeclock import LearnerSetup, NodeClock
from embedding.worker.learning.planning import BlockPlan
from embedding.worker.learning.replaying import Replaying
from embedding.worker.learning.ticks import Work


class LearnerLink:
    """Pulls and pushes for one node, each at the node's clock.

    A pull may be held back for rounds of all nodes; the node takes part in them meanwhile.

    turn  where the node stands with the server
    past  what it remembers, for rounds
    """

    def __init__(
        self,
        server: Transport,
        setup: LearnerSetup,
        turn: NodeClock,
        past: Replaying,
    ) -> None:
        self.server = server
        self.turn = turn
        self._setup = setup
        self._past = past
        self._unseen: tuple[int, tuple[RowDelta, ...]] = (0, ())

    def pull(
        self, planned: BlockPlan, scores: Sequence[ScorePairs] = (), clock: int | None = None
    ) -> PulledRows:
        """Pull the block's rows; every source's pairs are scored on the tables as they are now."""
        return self.ask(planned.rows(), scores, self.turn.clock if clock is None else clock)

    def pull_ahead(
        self, planned: BlockPlan, scores: Sequence[ScorePairs], clock: int
    ) -> PulledRows | None:
        """Pull at the next clock, before the last push is answered; None when it must wait."""
        try:
            return self.pull(planned, scores, clock)
        except AheadError:
            return None

    def ask(
        self, ids: Mapping[Table, IntArray], scores: Sequence[ScorePairs], clock: int
    ) -> PulledRows:
        """Pull these rows."""
        request = PullRequest(ids, clock, scores)
        rows, before = self._past.pulled(partial(self.server.pull, request))
        self.turn.stopwatch.held(rows, before)
        self.turn.prepared(rows.clock)
        return rows

    def vectors(self, clock: int, ids: IntArray) -> FloatArray:
        """Rows float32 [n, dim] of `in` as they are now."""
        return widen(self.server.pull(PullRequest({Table.IN: ids}, clock)).rows[Table.IN])

    def push(
        self, work: Work, clock: int, deltas: tuple[RowDelta, ...], *, kept: bool = False
    ) -> Ack:
        """Send a push of rows as they were at `clock`, and follow what the server answers.

        kept  the node has copies of its own that these deltas are in already
        """
        first = self.turn.sequence + 1
        *portions, last = work.in_portions(self._setup.most_bytes)
        for portion in portions:
            self._push(portion, clock, (), first)
        ack = self._push(last, clock, deltas, first)
        self._unseen = (self.turn.sequence, () if kept else deltas)
        return ack

    def _push(self, work: Work, clock: int, deltas: tuple[RowDelta, ...], first: int) -> Ack:
        setup, sequence = self._setup, self.turn.sequence + 1
        push = work.push(setup.node, sequence, clock, deltas, setup.calendar, first, setup.life)
        ack = self.server.push(self.turn.push(work, push))
        self.turn.pushed(work, ack)
        return ack

    def unseen(self, rows: PulledRows) -> dict[Table, RowDelta]:
        """The node's last delta, unless it is in these rows."""
        sequence, deltas = self._unseen
        return {} if rows.sequence >= sequence else {delta.table: delta for delta in deltas}

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands."""
        self.turn.restart(clock, sequence)
        self._unseen = (0, ())
