"""The policy whose clocks end without the slowest nodes."""

from __future__ import annotations

from embedding.kernel.config import part_of
from embedding.server.policies.base import Bsp, ClockTable, Drop, Instruction
from embedding.server.policies.traits import POLICIES, PolicyTraits
from yeoron_lab.settings import BackupSettings


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
        return max(1, active - part_of(self.config, BackupSettings).backups)

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
