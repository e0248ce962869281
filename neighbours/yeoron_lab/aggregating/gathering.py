"""When the pushes of a group of nodes leave together: a pure state machine.

The nodes of a group work synchronously: pushes of one clock leave when every node that takes part
has pushed at that clock. A node takes part from its first push until it falls idle or leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from embedding.exchange.protocol import Push


@dataclass(frozen=True)
class NodePush:
    """A push and the session of its node."""

    push: Push
    session: int

    @property
    def node(self) -> str:
        """Who pushed."""
        return self.push.node

    @property
    def clock(self) -> int:
        """Of the push."""
        return self.push.clock


@dataclass
class Gathering:
    """Holds parts until those of their clock are all there.

    done  by node that takes part: the clock of its last push
    """

    done: dict[str, int] = field(default_factory=dict)
    waiting_pushes: list[NodePush] = field(default_factory=list)

    def push(self, part: NodePush) -> list[list[NodePush]]:
        """A node pushed; the sums that are due now, each a list of parts of different nodes."""
        # A node that sends again, because it heard no answer, is held once.
        self.waiting_pushes = [each for each in self.waiting_pushes if each.node != part.node]
        self.waiting_pushes.append(part)
        self.done[part.node] = max(part.clock, self.done.get(part.node, part.clock))
        return self._due()

    def leave(self, node: str) -> list[list[NodePush]]:
        """A node has nothing to push for now, or is gone; what it gave stays."""
        self.done.pop(node, None)
        return self._due()

    def expire(self) -> list[list[NodePush]]:
        """Whoever keeps the others waiting takes part no longer; all that is held is due."""
        waiting = {part.node for part in self.waiting_pushes}
        self.done = {node: clock for node, clock in self.done.items() if node in waiting}
        return self._due(everything=True)

    def _due(self, *, everything: bool = False) -> list[list[NodePush]]:
        found = []
        for clock in sorted({part.clock for part in self.waiting_pushes}):
            if not everything and any(done < clock for done in self.done.values()):
                break
            # By name, so that a sum does not depend on who came first.
            ready = sorted(
                (p for p in self.waiting_pushes if p.clock == clock), key=lambda p: p.node
            )
            found.append(ready)
        done = [part for ready in found for part in ready]
        self.waiting_pushes = [part for part in self.waiting_pushes if part not in done]
        return found
