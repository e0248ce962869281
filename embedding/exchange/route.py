"""What a learner asks for rows: the server, or something that stands before it.

A route speaks like `ParameterClient` to the learner; how rows travel behind it is its business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from embedding.exchange.allreduce.density import Touches
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Ack, Push, Rows, VocabularyDelta
from embedding.exchange.testimony import Attestation
from embedding.kernel.records import IntArray, ScorePairs, Table


class Server(Protocol):
    """The calls of a ParameterClient that a route is built on."""

    def admit(
        self, words: list[str], counts: IntArray, testimony: Attestation | None = None
    ) -> IntArray:
        """Ids of words, -1 for those that have none yet."""
        ...

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        """Words admitted after version `since`, and the counts of all."""
        ...

    def pull(
        self,
        vectors: IntArray,
        contexts: IntArray,
        *,
        clock: int,
        score: Sequence[ScorePairs] = (),
        grams: IntArray | None = None,
    ) -> Rows:
        """Rows of the tables, as the policy lets them be read."""
        ...

    def push(self, push: Push) -> Ack:
        """Apply a delta once."""
        ...

    def idle(self) -> None:
        """Nobody shall wait for this node."""
        ...

    def status(self) -> dict[str, Any]:
        """The server's status."""
        ...


@dataclass
class Ways:
    """How many rows of this node went which way, and how densely blocks touch the tables."""

    server_rows: int = 0
    reduced_rows: int = 0
    blocks: int = 0
    touches: dict[Table, Touches] = field(default_factory=dict)
    touched: dict[Table, int] = field(default_factory=dict)
    known: dict[Table, int] = field(default_factory=dict)

    def block(self, deltas: tuple[RowDelta, ...]) -> None:
        """A block moved these rows."""
        self.blocks += 1
        for delta in deltas:
            table = delta.table
            self.touches.setdefault(table, Touches()).note(delta.ids)
            self.touched[table] = self.touched.get(table, 0) + len(delta.ids)
            top = int(delta.ids.max(initial=-1)) + 1
            self.known[table] = max(self.known.get(table, 0), top)

    def density(self) -> dict[str, float]:
        """By table, the mean share of the known rows that a block moved."""
        return {
            str(table): touched / max(self.blocks * self.known[table], 1)
            for table, touched in dict(self.touched).items()
        }


class Route:
    """Every row by the server; others override what they do otherwise. One thread uses it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.ways = Ways()

    def admit(
        self, words: list[str], counts: IntArray, testimony: Attestation | None = None
    ) -> IntArray:
        """As a client's."""
        if testimony is None:
            return self.server.admit(words, counts)
        return self.server.admit(words, counts, testimony)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        """As a client's."""
        return self.server.vocabulary(since)

    def pull(
        self,
        vectors: IntArray,
        contexts: IntArray,
        *,
        clock: int,
        score: Sequence[ScorePairs] = (),
        grams: IntArray | None = None,
    ) -> Rows:
        """As a client's."""
        return self.server.pull(vectors, contexts, clock=clock, score=score, grams=grams)

    def push(self, push: Push) -> Ack:
        """As a client's."""
        self.ways.block(push.deltas)
        self.ways.server_rows += sum(len(delta.ids) for delta in push.deltas)
        return self.server.push(push)

    def finish(self) -> None:
        """There are no more blocks: do what the others need, until all have come so far."""

    def figures(self) -> dict[str, Any]:
        """JSON-safe: rows and bytes by way, density."""
        relay = getattr(self.server, "relay", None)
        return {
            "kind": "ps",
            "rows": {"server": self.ways.server_rows},
            "density": self.ways.density(),
            **({} if relay is None else relay.figures()),
        }

    def close(self) -> None:
        """Let the other nodes go; never raises."""
