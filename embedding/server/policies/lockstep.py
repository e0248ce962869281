"""Policies with a barrier: the pushes of a clock are applied together."""

from __future__ import annotations

from embedding.server.policies.base import Policy, by_clock, overlapping
from embedding.server.policies.board import Apply, ClockTable, Drop, Instruction, PendingPush
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


@POLICIES.register(
    "backup", PolicyTraits(waits=True, moves_rows_by_pushes_alone=True, needs_no_own_rows=True)
)
class Backup(Bsp):
    """Synchronous with backup nodes (Chen 2016, section 3.1, "Revisiting Distributed Synchronous
    SGD"): of N + b active nodes the first N that push a clock close it; what others push of it
    later is dropped and counted, and they go on at the clock that is open.

    Invariant: who reads at clock c sees the first N deltas of every clock before c, none of c, and
    never one that came after its clock was closed; nobody waits for more than N nodes.
    """

    name = "backup"

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        """Nobody for a clock that is open; else the nodes of which enough have to push first."""
        return [] if clock <= board.closed else board.behind(clock)

    def counted(self, active: int) -> int:
        """N = active nodes less b, at least 1."""
        return max(1, active - self.config.backups)

    def closes(self, board: ClockTable) -> int:
        """The clock that N of the active nodes have reached."""
        clocks = sorted(board.active_clocks(), reverse=True)
        reached = clocks[self.counted(len(clocks)) - 1] if clocks else board.furthest()
        return max(board.closed, reached)

    def release(self, board: ClockTable, upto: int) -> list[Instruction]:
        """Drop what came after its clock was closed; apply what was closed just now."""
        late = [t for t in board.held if t.clock < board.closed]
        # After a restart of the server nodes send again what had been applied before.
        again = [t for t in late if t.clock < board.members[t.node].greeted]
        ready = [t for t in board.held if board.closed <= t.clock < upto]
        dropped: list[Instruction] = [Drop((t,)) for t in late if t not in again]
        return [*dropped, *self._together(again), *self._together(ready)]
