"""What policies look at and what they order: nodes, pushes held back, instructions."""

from __future__ import annotations

from dataclasses import dataclass, field

from embedding.server.policies.speeds import Speeds


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
    """A push that arrived: which node's, of which clock, and its sequence number."""

    node: str
    clock: int
    sequence: int


@dataclass(frozen=True)
class Apply:
    """Instruction: apply these pushes now, in this order, their rows multiplied by `scale`.

    average  each row moves by the mean of the pushes among these that hold it
    """

    tickets: tuple[PendingPush, ...]
    scale: float = 1.0
    average: bool = False


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
