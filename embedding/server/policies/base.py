"""What every consistency policy looks at and decides: nodes, speeds, pushes held back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from embedding.exchange.protocol import Pace, Push
from embedding.server.config import SyncConfig
from embedding.server.policies.traits import POLICIES, PolicyTraits

if TYPE_CHECKING:
    from embedding.server.rows.devices import RowDevice, SharedRows

_SpeedStream = tuple[str, str]
"""A node and a source that it reads."""


class Speeds:
    """How quickly sources are read and learnt, without the time that nodes wait for each other:
    tokens a second of each source at each node over the last `window_s` seconds.

    A node says with each push how long it took, less what a policy held it back: under a barrier
    all nodes learn at the pace of the slowest, and only so it shows that they need not.
    """

    def __init__(self, window_s: float = 30.0) -> None:
        self.window_s = window_s
        self._heard: dict[_SpeedStream, deque[tuple[float, int, float]]] = {}

    def __len__(self) -> int:
        return len(self._heard)

    def add(self, node: str, tokens: dict[str, int], seconds: float, now: float) -> None:
        """A node learnt `tokens` of each source in `seconds`; of no length: not measured."""
        if not seconds > 0:
            return
        for source, n in tokens.items():
            heard = self._heard.setdefault((node, source), deque())
            heard.append((now, n, seconds))
            while len(heard) > 1 and heard[0][0] < now - self.window_s:
                heard.popleft()

    def rates(self, nodes: Collection[str]) -> dict[_SpeedStream, float]:
        """Tokens a second of every stream of these nodes."""
        return {
            stream: sum(n for _, n, _ in heard) / sum(seconds for _, _, seconds in heard)
            for stream, heard in self._heard.items()
            if stream[0] in nodes
        }

    def variation(self, nodes: Collection[str]) -> float | None:
        """Coefficient of variation of the rates; None until two streams of every node are known.

        Standard deviation (of the population) over mean.
        """
        rates = list(self.rates(nodes).values())
        known = {node for node, _ in self._heard}
        if len(rates) < 2 or not all(node in known for node in nodes):
            return None
        mean = sum(rates) / len(rates)
        spread = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
        return spread / mean if mean else 0.0


@dataclass
class ClockEntry:
    """A node as the policies see it.

    clock    number of clocks it has finished: it has pushed 0 … clock-1
    active   it takes part; an idle or departed node holds nobody back
    greeted  the clock that it named at its greeting; what it pushes of earlier ones it sends again
    """

    name: str
    clock: int = 0
    active: bool = False
    present: bool = False
    last_seen: float = 0.0
    greeted: int = 0


@dataclass(frozen=True)
class PendingPush:
    """A push that arrived from a node at one of its clocks."""

    node: str
    clock: int
    sequence: int


@dataclass(frozen=True)
class Apply:
    """Instruction: apply these pushes now, in this order, their rows multiplied by `scale`.

    combine  makes of these pushes those that are applied, as their means; None: as they are
    """

    tickets: tuple[PendingPush, ...]
    scale: float = 1.0
    combine: Callable[[Sequence[Push]], list[Push]] | None = None


@dataclass(frozen=True)
class Drop:
    """Instruction: these pushes came too late; count their words, leave their rows out."""

    tickets: tuple[PendingPush, ...]


Instruction = Apply | Drop


@dataclass
class ClockTable:
    """Everything a policy may look at.

    since   clock at which the policy of now began: reads of earlier clocks were its predecessor's
    closed  clocks below this take no push any more (backup)
    """

    members: dict[str, ClockEntry] = field(default_factory=dict)
    held: list[PendingPush] = field(default_factory=list)
    speeds: Speeds = field(default_factory=Speeds)
    since: int = 0
    closed: int = 0

    @property
    def floor(self) -> int:
        """Clock below which nobody begins another block."""
        return max(self.since, self.closed)

    def active(self) -> list[str]:
        return [member.name for member in self.members.values() if member.active]

    def active_clocks(self) -> list[int]:
        return [member.clock for member in self.members.values() if member.active]

    def slowest(self) -> int | None:
        return min(self.active_clocks(), default=None)

    def furthest(self) -> int:
        return max((member.clock for member in self.members.values()), default=0)

    def behind(self, clock: int) -> list[str]:
        """Names of the nodes that take part and have not reached `clock`."""
        members = self.members.values()
        return [member.name for member in members if member.active and member.clock < clock]

    def current(self) -> int:
        """Clock at which a node that comes (back) goes on."""
        slowest = self.slowest()
        return max(self.floor, self.furthest() if slowest is None else slowest)


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
