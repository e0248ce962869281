"""What became of each node's pushes: taken once, applied in order, durable after a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from embedding.kernel.errors import FencedError, RefusedError, ReplacedError
from embedding.server.ledger.fences import Fences


@dataclass
class NodeLedger:
    """One node's pushes: accepted ≥ applied ≥ durable.

    A node keeps its pushes above `durable` and sends those above `accepted` again when it connects.
    So after a crash each is taken once: `accepted` starts where the checkpoint ends, and nothing
    between is gone from the node's memory.

    tokens         of the pushes that are applied: after a restart the others come again
    incarnation    mark of the process that greeted last
    offset, applied_offset  where the node's reader goes on behind the push accepted last, and
                            behind the one applied last
    """

    accepted: int = 0
    applied: int = 0
    durable: int = 0
    tokens: int = 0
    session: int = 0
    incarnation: str = ""
    offset: str = ""
    applied_offset: str = ""


@dataclass
class Ledger:
    """All nodes' pushes.

    fences  incarnations that may not push any more
    """

    nodes: dict[str, NodeLedger] = field(default_factory=dict)
    fences: Fences = field(default_factory=Fences)
    keeps_checkpoints: bool = True

    def of(self, node: str) -> NodeLedger:
        """The node's entry, made when it is new."""
        return self.nodes.setdefault(node, NodeLedger())

    def keep_fences(self, path: Path) -> None:
        """Go on with the fences of a file, and note new ones there."""
        self.fences = Fences(path)

    def greet(self, node: str, incarnation: str) -> None:
        """A process connects in the node's name; FencedError when what it held is others' now."""
        entry = self.of(node)
        if self.fences.holds(node, incarnation):
            raise FencedError(f"node {node}: its sources were given to others; it starts again.")
        # From here on pushes by the stream before are refused. One that is still under way there
        # has a number that the new process uses too, whose own push would pass for a duplicate.
        entry.session += 1
        entry.incarnation = incarnation

    def check(self, node: str, session: int) -> None:
        """ReplacedError when the node has connected again since: two processes use one name;
        FencedError when others read its sources now."""
        entry = self.of(node)
        if entry.session == session:
            return
        if self.fences.holds(node, entry.incarnation):
            raise FencedError(f"node {node}: its sources were given to others; it starts again.")
        raise ReplacedError(f"node {node}: another process has connected under this name.")

    def fence(self, node: str, incarnation: str) -> bool:
        """No push of this incarnation is taken from now on; whether it was connected."""
        if not self.fences.add(node, incarnation):
            return False
        entry = self.nodes.get(node)
        if entry is None or entry.incarnation != incarnation:
            return False
        # A push of it that is on its way comes by a stream of the session before, and is refused.
        entry.session += 1
        return True

    def is_duplicate(self, node: str, sequence: int) -> bool:
        """Whether this push was taken before, or is the next one; RefusedError for a gap."""
        accepted = self.of(node).accepted
        if sequence > accepted + 1:
            raise RefusedError(
                f"push {sequence} of node {node}: gap, the server expects {accepted + 1}.",
                kind="sequence",
            )
        # Not by `applied`: a push that is held back, whose answer was lost, is here already.
        return sequence <= accepted

    def accept(self, node: str, sequence: int, offset: str = "") -> None:
        """The push was taken, though perhaps held back."""
        entry = self.of(node)
        entry.accepted, entry.offset = sequence, offset

    def apply(self, node: str, sequence: int, offset: str = "", tokens: int = 0) -> None:
        """The push, which brought so many tokens, is in the tables and the counts."""
        entry = self.of(node)
        entry.applied, entry.applied_offset = sequence, offset
        entry.tokens += tokens
        if not self.keeps_checkpoints:
            entry.durable = sequence

    def restore(self, node: str, sequence: int, tokens: int, offset: str) -> None:
        """A checkpoint holds the node's pushes up to `sequence`, and nothing later is known."""
        entry = self.of(node)
        # `accepted` too: pushes that a policy held back died with the server, and only those that
        # it does not claim to have are sent again.
        entry.accepted = entry.applied = entry.durable = sequence
        entry.offset = entry.applied_offset = offset
        entry.tokens = tokens

    def persisted(self, applied: dict[str, int]) -> None:
        """A checkpoint holds every push up to `applied`, by node.

        `applied` as it was when the checkpoint was begun: what was applied while it was written is
        in none, and a node forgets its pushes up to `durable`.
        """
        for node, sequence in applied.items():
            entry = self.of(node)
            entry.durable = max(entry.durable, sequence)
