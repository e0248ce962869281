"""What the consistency machine says, carried out: rows change first, then it is booked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.records import IntArray, Table
from embedding.server.figures.meters import Meters
from embedding.server.flight.validation import check_buckets
from embedding.server.policies.board import Apply, Instruction
from embedding.server.recovery.sequence import Ledger
from embedding.server.rows.averaging import averaged
from embedding.server.rows.changing import Changes, Step
from embedding.server.rows.tables import Tables
from embedding.server.words.accounting import Accounts, Arrival
from embedding.server.words.overlay import Overlay
from embedding.server.words.vocabulary import Vocabulary


class AppliesPushes:
    """A server's state where pushes come into its rows and its books.

    changes  what there was no memory for is tried again before anything is read or taken
    _held    pushes that were taken and of which the policy has said nothing yet
    """

    changed: threading.Condition
    tables: Tables
    vocabulary: Vocabulary
    accounts: Accounts
    young: Overlay
    ledger: Ledger
    meters: Meters
    changes: Changes
    _held: dict[tuple[str, int], Arrival]

    def execute(self, instructions: Sequence[Instruction], now: float) -> None:
        """Carry out what the consistency machine says (under the lock)."""
        for instruction in instructions:
            arrivals = [self._held.pop((t.node, t.sequence)) for t in instruction.tickets]
            if isinstance(instruction, Apply) and not self.changes.waiting:
                self.accounts.complete(arrivals, now)
            self.changes.carry_out(partial(self._planned, instruction, arrivals, now))
        if instructions:
            self.changed.notify_all()

    def _planned(
        self, instruction: Instruction, arrivals: Sequence[Arrival], now: float
    ) -> Iterator[Step]:
        """Nothing is booked before the rows hold it."""
        pushes = [arrival.push for arrival in arrivals]
        if isinstance(instruction, Apply):
            own = instruction.scale == 1.0 and not instruction.average
            for push in averaged(pushes) if instruction.average else pushes:
                writer = push.node if own and push.keeps else None
                for delta in push.deltas:
                    yield partial(self.add_rows, delta, instruction.scale, writer)
        else:
            yield partial(self._dropped, pushes)
        for arrival in arrivals:
            yield partial(self._book, arrival, now)

    def _dropped(self, pushes: Sequence[Push]) -> None:
        self.meters.dropped_pushes += len(pushes)
        self.meters.dropped_tokens += sum(push.tokens for push in pushes)
        self.tables.versions.lost([push.node for push in pushes])

    def _book(self, arrival: Arrival, now: float) -> None:
        self.accounts.learnt(arrival, now)
        self.young.learnt(arrival.push)
        self.ledger.apply(arrival.push.node, arrival.push.sequence, arrival.push.place)

    def add_rows(self, delta: RowDelta, scale: float, writer: str | None) -> None:
        """Add how rows moved, all of them or none; those of evicted words are dropped.

        writer  the node that has these changes already
        """
        self.tables.versions.writing(writer)
        slots = self.slots_of(delta.table, delta.ids, "push")
        values = delta.values
        gone = slots < 0
        if gone.any():
            slots, values = slots[~gone], values[~gone]
        self.tables.add(delta.table, slots, values, scale)
        self.meters.dropped_rows += int(gone.sum())
        self.meters.rows_in += len(slots)

    def slots_of(self, table: Table, ids: IntArray, what: str) -> IntArray:
        """Where rows lie: words by their slot, -1 for evicted ones; n-grams by their bucket."""
        if table is not Table.SUB:
            return self.vocabulary.slots(ids, what)
        return check_buckets(ids, self.tables.buckets, what)
