"""Policies with a barrier: the pushes of a clock are applied together."""

from __future__ import annotations

from embedding.server.policies.base import Policy, by_clock, overlapping
from embedding.server.policies.board import Apply, ClockTable, Instruction, PendingPush
from embedding.server.policies.traits import POLICIES, PolicyTraits


@POLICIES.register(
    "bsp",
    PolicyTraits(waits=True, moves_rows_by_pushes_alone=True, needs_no_own_rows=True, in_step=True),
)
class Bsp(Policy):
    """Bulk-synchronous (Valiant 1990): the deltas of a clock are applied together, once every
    active node gave its.

    Invariant: who reads at clock c sees the deltas of all active nodes up to c-1 and none of c.
    """

    name = "bsp"

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        """Every active node that has not finished clock-1."""
        return board.behind(clock)

    def release(self, board: ClockTable, upto: int) -> list[Instruction]:
        """All deltas of each clock that every active node has finished, as sum or mean."""
        del upto
        slowest = board.slowest()
        ready = [t for t in board.held if slowest is None or t.clock < slowest]
        return self._together(ready)

    def flush(self, board: ClockTable) -> list[Instruction]:
        """By clock, as ever, though not every node has given its delta."""
        return self._together(board.held)

    def pooled(self, board: ClockTable) -> int:
        """A mean is made by the server: then nodes push whole deltas. Else see `overlapping`."""
        if self.config.combine == "mean":
            return 1
        return overlapping(self.counted(len(board.active_clocks())))

    def counted(self, active: int) -> int:
        """How many deltas of a clock are applied when so many nodes take part."""
        return max(1, active)

    def _together(self, tickets: list[PendingPush]) -> list[Instruction]:
        mean = self.config.combine == "mean"
        return [Apply(each, 1.0 / len(each) if mean else 1.0) for each in by_clock(tickets)]
