"""What a node asks of the parameter server, whichever way its rows travel.

    ParameterClient    every row by the server (topology ps), or by its shards
    ReducingTransport  dense rows summed among the nodes, the others by the transport below it

A learner knows this interface alone (docs/adr/0027-one-transport.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from embedding.exchange.contributors import Contributors
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Ack, PulledRows, PullRequest, Push, VocabularyDelta
from embedding.kernel.records import IntArray, Table


class Words(Protocol):
    """Where words get their rows."""

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        """Ids of words (int64 [n]), -1 for one that has not been seen often enough.

        counts        int64 [n] occurrences that are about to be pushed; they are not counted now
        contributors  who used the words; None for those of a corpus
        """

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        """Words admitted, and ids evicted, after version `since`, and the counts of all."""


class Transport(Words, Protocol):
    """The server's tables, as one node reads and moves them. One thread uses it."""

    def pull(self, request: PullRequest) -> PulledRows:
        """Rows as the policy lets them be read; waits as long as it says."""

    def push(self, push: Push) -> Ack:
        """Apply what was learnt, once however often it is sent."""

    def idle(self) -> None:
        """Nothing to learn at the moment: nobody waits for this node."""

    def status(self) -> dict[str, Any]:
        """The server's status."""

    def finish(self) -> None:
        """There are no more blocks: do what the others need, until all have come so far."""

    def figures(self) -> dict[str, Any]:
        """JSON-safe: rows and bytes by the way they went, density of the blocks."""

    def close(self) -> None:
        """Let the other nodes and the server go."""


@dataclass
class TransportMetrics:
    """How many rows of this node went which way, and how densely blocks touch the tables."""

    server_rows: int = 0
    reduced_rows: int = 0
    blocks: int = 0
    touched: dict[Table, int] = field(default_factory=dict)
    known: dict[Table, int] = field(default_factory=dict)

    def block(self, deltas: Sequence[RowDelta]) -> None:
        """A block moved these rows."""
        self.blocks += 1
        for delta in deltas:
            table = delta.table
            self.touched[table] = self.touched.get(table, 0) + len(delta.ids)
            top = int(delta.ids.max(initial=-1)) + 1
            self.known[table] = max(self.known.get(table, 0), top)

    def density(self) -> dict[str, float]:
        """By table, the mean share of the known rows that a block moved."""
        return {
            str(table): touched / max(self.blocks * self.known[table], 1)
            for table, touched in dict(self.touched).items()
        }
