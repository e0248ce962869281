"""What policies look at and what they order: nodes, speeds, pushes held back, instructions."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from embedding.exchange.protocol import Push

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
    """A push that arrived: which node's, of which clock, and its sequence number."""

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
