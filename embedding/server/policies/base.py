"""What every consistency policy decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from embedding.exchange.protocol import Pace
from embedding.server.config import SyncConfig
from embedding.server.policies.board import Apply, ClockTable, Instruction, PendingPush
from embedding.server.policies.traits import POLICIES, PolicyTraits

if TYPE_CHECKING:
    from embedding.server.rows.devices import RowDevice, SharedRows


class Policy(ABC):
    """What a policy decides. `name` is what people write in a configuration."""

    name: ClassVar[str]

    def __init__(self, config: SyncConfig) -> None:
        self.config = config

    @staticmethod
    def shared_rows(device: RowDevice, rows: Sequence[int], dim: int) -> SharedRows | None:
        """The tables of a server whose nodes write to them (`needs_shared_memory`): so many rows of
        each, float32 [rows[i], dim]. None: nodes do not."""
        del device, rows, dim
        return None

    @property
    def ruling(self) -> Policy:
        """The policy that decides at the moment: itself, or the one that `auto` chose."""
        return self

    @property
    def reads_ahead(self) -> bool:
        """Whether a node may read at its next clock before it has pushed its last."""
        return False

    @abstractmethod
    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        """Nodes that a reader at `clock` has to wait for; it may read when there is none."""

    def closes(self, board: ClockTable) -> int:
        """Clocks below this take no push any more."""
        return board.closed

    def release(self, board: ClockTable, upto: int) -> list[Instruction]:
        """What to do with the pushes in `board.held`; called after every event.

        upto  what `closes` said now; `board.closed` is still what it said before
        Here: apply each as it comes (eager).
        """
        return [Apply((ticket,)) for ticket in board.held]

    def flush(self, board: ClockTable) -> list[Instruction]:
        """Apply everything that is held back: another policy follows, or the server stops."""
        held = sorted(board.held, key=lambda t: (t.clock, t.node, t.sequence))
        return [Apply((ticket,)) for ticket in held]

    def pooled(self, board: ClockTable) -> int:
        """How many nodes' deltas of the same rows are added up; nodes push shares for so many."""
        return max(1, len(board.active_clocks()))

    def pace(self, board: ClockTable) -> Pace:
        """How nodes are to go about their rows. Here: every block pulls and pushes."""
        return Pace(pooled=self.pooled(board))

    def finished(self, board: ClockTable) -> None:
        """A round of all nodes is over."""
        return

    def reconsider(self, board: ClockTable, *, now: float) -> str | None:
        """Look at the board; why another policy rules from now on, None: none does."""
        return None


def overlapping(nodes: int) -> int:
    """Nodes for which each pushes its share where the deltas of `nodes` meet: 2(n-1), at least n.

    Without a barrier a delta meets those of the n-1 others that were under way when its rows were
    read, and those that they read before it came in. With the shares of n such a delay makes
    frequent rows swing about their point of rest (x' = x - a·x delayed by d swings from
    a = d^d/(d+1)^(d+1) on, and for d = n-1 the share 1/n is twice that and more).

    Under a barrier n deltas start from the same rows. But a share takes one row to move towards
    rest while the other table's stand still; in n blocks at once the rows of both tables move
    towards each other, and words of middling frequency go beyond it, clock after clock.
    """
    return max(1, nodes, 2 * (nodes - 1))


def by_clock(tickets: Iterable[PendingPush]) -> list[tuple[PendingPush, ...]]:
    """Tickets of each clock, in order of clocks, then of nodes: not of who came first."""
    ordered = sorted(tickets, key=lambda t: (t.clock, t.node, t.sequence))
    clocks = dict.fromkeys(ticket.clock for ticket in ordered)
    return [tuple(t for t in ordered if t.clock == clock) for clock in clocks]


class Eager(Policy):
    """Each push is applied as it arrives."""

    def pooled(self, board: ClockTable) -> int:
        return overlapping(len(board.active_clocks()))


@POLICIES.register(
    "ssp",
    PolicyTraits(waits=True, moves_rows_by_pushes_alone=True, needs_no_own_rows=True, in_step=True),
)
class Ssp(Eager):
    """Stale-synchronous parallel (Ho 2013, section 2): a reader at clock c sees every update of
    clocks up to c-s-1, and its own; the fastest active node is at most s clocks ahead.

    Updates are applied as they arrive, as in Petuum's ESSP.
    """

    name = "ssp"

    @property
    def reads_ahead(self) -> bool:
        """With a staleness of at least 1 the bound holds without the node's own last push."""
        return self.config.staleness > 0

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        """Every active node more than s clocks behind the reader."""
        return board.behind(clock - self.config.staleness)


@POLICIES.register(
    "asp", PolicyTraits(moves_rows_by_pushes_alone=True, needs_no_own_rows=True, in_step=True)
)
class Asp(Eager):
    """Asynchronous (Downpour, Dean 2012, section 4.1): nobody ever waits. A node pulls rows again
    every n_fetch blocks and pushes every n_push blocks what its own copies moved by.
    """

    name = "asp"

    @property
    def reads_ahead(self) -> bool:
        return True

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        return []

    def pace(self, board: ClockTable) -> Pace:
        """n_push and n_fetch."""
        config = self.config
        return replace(super().pace(board), push_every=config.n_push, pull_every=config.n_fetch)


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
