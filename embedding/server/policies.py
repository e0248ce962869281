"""Consistency policies: when a delta reaches the tables and when a node may read them.

Each is a pure function of the board (who is at which clock, what is held back), so that all are
tested alike on generated orders of events. `POLICIES` names them; add one by adding a class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from embedding.errors import ConfigError
from embedding.server.config import SyncConfig


@dataclass
class Member:
    """A node as the policies see it.

    clock   number of clocks it has finished: it has pushed 0 … clock-1
    active  it takes part; an idle or departed node holds nobody back
    """

    name: str
    clock: int = 0
    active: bool = False
    present: bool = False
    last_seen: float = 0.0


@dataclass(frozen=True)
class Ticket:
    """A push that arrived: which node's, of which clock, and its sequence number."""

    node: str
    clock: int
    sequence: int


@dataclass(frozen=True)
class Apply:
    """Instruction: apply these pushes now, in this order, their rows multiplied by `scale`."""

    tickets: tuple[Ticket, ...]
    scale: float = 1.0


@dataclass(frozen=True)
class Drop:
    """Instruction: these pushes came too late; count their words, leave their rows out."""

    tickets: tuple[Ticket, ...]


Instruction = Apply | Drop


@dataclass
class Board:
    """Everything a policy may look at."""

    members: dict[str, Member] = field(default_factory=dict)
    held: list[Ticket] = field(default_factory=list)

    def active_clocks(self) -> list[int]:
        """Clocks of the nodes that take part."""
        return [member.clock for member in self.members.values() if member.active]

    def slowest(self) -> int | None:
        """Clock of the slowest node that takes part; None when none does."""
        return min(self.active_clocks(), default=None)

    def behind(self, clock: int) -> list[str]:
        """Names of the nodes that take part and have not reached `clock`."""
        members = self.members.values()
        return [member.name for member in members if member.active and member.clock < clock]

    def current(self) -> int:
        """Clock at which a node that comes (back) goes on."""
        slowest = self.slowest()
        if slowest is not None:
            return slowest
        return max((member.clock for member in self.members.values()), default=0)


class Policy(ABC):
    """What a policy decides. `name` is what people write in a configuration."""

    name: ClassVar[str]

    def __init__(self, config: SyncConfig) -> None:
        self.config = config

    @property
    def reads_ahead(self) -> bool:
        """Whether a node may read at its next clock before it has pushed its last."""
        return False

    @abstractmethod
    def waiting_for(self, board: Board, clock: int) -> list[str]:
        """Nodes that a reader at `clock` has to wait for; it may read when there is none."""

    def release(self, board: Board) -> list[Instruction]:
        """What to do with the pushes in `board.held`; called after every event.

        Here: apply each as it comes (eager).
        """
        return [Apply((ticket,)) for ticket in board.held]


class Bsp(Policy):
    """Bulk-synchronous: deltas of a clock are applied together, once every active node gave its.

    Invariant: who reads at clock c sees the deltas of all active nodes up to c-1 and none of c.
    """

    name = "bsp"

    def waiting_for(self, board: Board, clock: int) -> list[str]:
        """Every active node that has not finished clock-1."""
        return board.behind(clock)

    def release(self, board: Board) -> list[Instruction]:
        """All deltas of each clock that every active node has finished, as sum or mean."""
        slowest = board.slowest()
        ready = sorted({t.clock for t in board.held if slowest is None or t.clock < slowest})
        instructions: list[Instruction] = []
        for clock in ready:
            # By node, so that the result does not depend on who came first.
            tickets = sorted(
                (ticket for ticket in board.held if ticket.clock == clock),
                key=lambda ticket: (ticket.node, ticket.sequence),
            )
            scale = 1.0 / len(tickets) if self.config.combine == "mean" else 1.0
            instructions.append(Apply(tuple(tickets), scale))
        return instructions


class Ssp(Policy):
    """Stale-synchronous parallel (Ho 2013, section 2): a reader at clock c sees every update of
    clocks up to c-s-1, and its own; the fastest active node is at most s clocks ahead.

    Updates are applied as they arrive, as in Petuum's ESSP.
    """

    name = "ssp"

    @property
    def reads_ahead(self) -> bool:
        """With a staleness of at least 1 the bound holds without the node's own last push."""
        return self.config.staleness > 0

    def waiting_for(self, board: Board, clock: int) -> list[str]:
        """Every active node more than s clocks behind the reader."""
        return board.behind(clock - self.config.staleness)


class Asp(Policy):
    """Asynchronous (Downpour, Dean 2012, section 4.1): nobody ever waits."""

    name = "asp"

    @property
    def reads_ahead(self) -> bool:
        """Always."""
        return True

    def waiting_for(self, board: Board, clock: int) -> list[str]:
        """Nobody."""
        del board, clock
        return []


class Hogwild(Asp):
    """Nobody waits, and rows do not travel: nodes of this host write to the tables themselves,
    without a lock (Recht 2011). A push brings words, counts and progress only.
    """

    name = "hogwild"


POLICIES: dict[str, type[Policy]] = {each.name: each for each in (Bsp, Ssp, Asp, Hogwild)}


def make_policy(config: SyncConfig) -> Policy:
    """The policy of this name; ConfigError names the accepted ones."""
    if config.policy not in POLICIES:
        raise ConfigError(
            f"policy {config.policy!r}: one of {', '.join(sorted(POLICIES))} is accepted."
        )
    return POLICIES[config.policy](config)
