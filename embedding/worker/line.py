"""What a node asks of the parameter server, whichever way its rows go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from embedding.exchange.protocol import Ack, Push, Rows
from embedding.kernel.records import IntArray, ScorePairs
from embedding.worker.lexicon import VocabularySource


class Server(VocabularySource, Protocol):
    """What the learner asks the parameter server for."""

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
