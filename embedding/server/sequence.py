"""What became of each node's pushes: taken once, applied in order, durable after a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from embedding.errors import RefusedError


class Verdict(Enum):
    """What to do with a push of some sequence number."""

    TAKE = "take"
    DUPLICATE = "duplicate"


@dataclass
class NodeLedger:
    """One node's pushes: accepted ≥ applied ≥ durable."""

    accepted: int = 0
    applied: int = 0
    durable: int = 0
    tokens: int = 0
    session: int = 0


@dataclass
class Ledger:
    """All nodes' pushes."""

    nodes: dict[str, NodeLedger] = field(default_factory=dict)
    keeps_checkpoints: bool = True

    def of(self, node: str) -> NodeLedger:
        """The node's entry, made when it is new."""
        return self.nodes.setdefault(node, NodeLedger())

    def judge(self, node: str, sequence: int) -> Verdict:
        """Whether this push is the next one; RefusedError for a gap."""
        accepted = self.of(node).accepted
        if sequence <= accepted:
            return Verdict.DUPLICATE
        if sequence > accepted + 1:
            raise RefusedError(
                f"push {sequence} of node {node}: gap, the server expects {accepted + 1}."
            )
        return Verdict.TAKE

    def accept(self, node: str, sequence: int) -> None:
        """The push was taken, though perhaps held back."""
        self.of(node).accepted = sequence

    def apply(self, node: str, sequence: int) -> None:
        """The push is in the tables and the counts."""
        entry = self.of(node)
        entry.applied = sequence
        if not self.keeps_checkpoints:
            entry.durable = sequence

    def persisted(self, applied: dict[str, int]) -> None:
        """A checkpoint holds every push up to `applied`, by node."""
        for node, sequence in applied.items():
            entry = self.of(node)
            entry.durable = max(entry.durable, sequence)
