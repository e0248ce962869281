"""Pushes that the policy holds back, and how they come into the rows and the books."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.server.grouping import Upstream
from embedding.server.ledger.sequence import Ledger
from embedding.server.policies.board import Apply, Instruction
from embedding.server.rows.changing import ChangeQueue, Step, deltas_of
from embedding.server.rowstore.interface import RowStore
from embedding.server.words.accounting import Accounts, PushArrival
from embedding.server.words.windows import WindowTracker


class Departures:
    """Nodes that went away and that windows wait for still, until what they pushed is in the books.

    Invariant: a window is cut behind the last count of every node that read for it. A policy with a
    barrier may hold a node's last pushes back when the node says goodbye. If the node were
    forgotten then, the watermark would pass texts that are in those pushes, and their window would
    be cut without them; and the pushes, applied later, would make the watermark wait for a node
    that is gone. The server's lock guards it.
    """

    def __init__(self, ledger: Ledger, tracker: WindowTracker) -> None:
        self._ledger = ledger
        self._tracker = tracker
        self._last: dict[str, int] = {}

    def gone(self, node: str, last: int | None = None) -> None:
        """A node went away.

        last  number of its last push; None: of the last one that was taken here
        """
        self._last[node] = self._ledger.of(node).accepted if last is None else last
        self.advance()

    def back(self, node: str) -> None:
        self._last.pop(node, None)

    def advance(self) -> None:
        """Forget those whose pushes are all in the books by now."""
        for node, last in tuple(self._last.items()):
            if self._ledger.of(node).applied >= last:
                del self._last[node]
                self._tracker.leave(node)


class Applying:
    """Carries out what the consistency machine says. The server's lock guards it.

    held        pushes that were taken and that the policy has not let through yet
    changes     what there was no memory for is tried again before anything is read or taken
    departures  nodes that went away while pushes of theirs are held
    """

    def __init__(
        self,
        rows: RowStore,
        accounts: Accounts,
        ledger: Ledger,
        upstream: Upstream | None,
    ) -> None:
        self._rows = rows
        self._accounts = accounts
        self._ledger = ledger
        self._upstream = upstream
        self.held: dict[tuple[str, int], PushArrival] = {}
        self.changes = ChangeQueue("the server")
        self.departures = Departures(ledger, accounts.tracker)

    def execute(self, instructions: Sequence[Instruction], now: float) -> None:
        """Apply pushes, or drop them, in this order."""
        if self._upstream is not None:
            for ticket in (each for one in instructions for each in one.tickets):
                push = self.held[ticket.node, ticket.sequence].push
                self._upstream.released(push, self._ledger.of(ticket.node).applied)
        # Shards hear of all of them before a window that one completes is copied.
        self._rows.released(instructions)
        for instruction in instructions:
            arrivals = [self.held.pop((t.node, t.sequence)) for t in instruction.tickets]
            if isinstance(instruction, Apply) and not self.changes.waiting:
                self._accounts.complete(arrivals, now)
            self.changes.carry_out(partial(self._planned, instruction, arrivals, now))

    def _planned(
        self, instruction: Instruction, arrivals: Sequence[PushArrival], now: float
    ) -> Iterator[Step]:
        """Rows change first. So a push that there was no memory for is not in the books, where
        its node would take it for applied."""
        pushes = [arrival.push for arrival in arrivals]
        if isinstance(instruction, Apply):
            scale = instruction.scale
            for delta, writer in deltas_of(pushes, scale, instruction.combine):
                yield partial(self.add, delta, scale, writer)
        else:
            yield partial(self._dropped, pushes)
        for arrival in arrivals:
            yield partial(self._book, arrival, now)

    def add(self, delta: RowDelta, scale: float, writer: str | None) -> None:
        """Add to rows (see RowStore.add) and count them."""
        added, meters = self._rows.add(delta, scale, writer), self._accounts.meters
        meters.dropped_rows += len(delta.ids) - added
        meters.rows_in += added

    def _dropped(self, pushes: Sequence[Push]) -> None:
        meters = self._accounts.meters
        meters.dropped_pushes += len(pushes)
        meters.dropped_tokens += sum(push.tokens for push in pushes)
        self._rows.tables.lost([push.node for push in pushes])

    def _book(self, arrival: PushArrival, now: float) -> None:
        push = arrival.push
        self._accounts.learnt(arrival, now)
        self._ledger.apply(push.node, push.sequence, push.offset, push.tokens)
        self.departures.advance()
