"""Balance: how large each node's blocks shall be, so that all need the same time for one.

Where a policy lets nodes wait for each other, a clock takes as long as its slowest node. Each node
tells how long it was at work on a push (without the time that it was held back); the server keeps
its speed, tokens by time, and answers with the node's share: a factor on its own block size,

    share = speed / mean speed of the nodes that take part,

so that all together learn as many tokens a clock as before. Repeated, it converges where the times
are the same, also when a block has costs that do not shrink with it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from embedding.server.policies.traits import POLICIES

LEAST, MOST = 1 / 32, 4.0
"""Bounds of a share."""
KEEP = 0.7
"""What the past weighs against a new push."""
STILL = 0.15
"""A share moves only when it is off by more than this part, so that alike nodes stay alike."""
_ENOUGH = 3
"""Pushes of a node before its speed is believed: the first ones compile and warm up."""


@dataclass
class NodeSpeed:
    """tokens and seconds are weighted sums; share is the factor that was sent last."""

    tokens: float = 0.0
    seconds: float = 0.0
    pushes: int = 0
    share: float = 1.0

    @property
    def rate(self) -> float | None:
        """Tokens a second at work; None until it was measured often enough."""
        return self.tokens / self.seconds if self.pushes >= _ENOUGH and self.seconds else None


class Balance:
    """Speeds and shares of all nodes. Not thread-safe: the server's lock guards it."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeSpeed] = {}

    def learnt(self, node: str, tokens: int, seconds: float) -> None:
        """A push of `node` took `seconds` at work (0: not measured) for `tokens` fresh tokens."""
        if tokens <= 0 or seconds <= 0:
            return
        speed = self.nodes.setdefault(node, NodeSpeed())
        speed.tokens = KEEP * speed.tokens + tokens
        speed.seconds = KEEP * speed.seconds + seconds
        speed.pushes += 1

    def share(self, node: str, active: Collection[str], policy: str) -> float:
        """The factor on the node's block size: 1 alone, beside unmeasured nodes, or where
        nobody waits."""
        speed = self.nodes.setdefault(node, NodeSpeed())
        wanted = self._wanted(node, active) if POLICIES.traits(policy).waits else 1.0
        if wanted == 1.0 or abs(wanted - speed.share) > STILL * speed.share:
            speed.share = wanted
        return speed.share

    def forget(self, node: str) -> None:
        self.nodes.pop(node, None)

    def _wanted(self, node: str, active: Collection[str]) -> float:
        known = [self.nodes[name].rate for name in active if name in self.nodes]
        rates = [rate for rate in known if rate is not None]
        own = self.nodes[node].rate
        if own is None or node not in active or len(rates) < max(len(active), 2):
            return 1.0
        return min(max(own * len(rates) / sum(rates), LEAST), MOST)
