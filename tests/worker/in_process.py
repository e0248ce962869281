"""What a node asks a server for, answered by a real one without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedding.exchange.protocol import (
    PROTOCOL_VERSION,
    Ack,
    PulledRows,
    PullRequest,
    Push,
    VocabularyDelta,
)
from embedding.kernel.errors import AheadError
from embedding.kernel.records import IntArray, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState

ASP = SyncConfig(policy="asp")


def make_state(sync: SyncConfig = ASP, *, dim: int = 4, **settings: object) -> ServerState:
    """A server's state; half_life_tokens None and min_count 1 unless told otherwise."""
    config = {"min_count": 1, "half_life_tokens": None, "device": "cpu", **settings}
    return ServerState(ServerConfig(**config), sync, RowShape(dim, seed=1))


class InProcess:
    """A node's line to a server's state; keeps what was pushed over it."""

    def __init__(self, state: ServerState, node: str = "n0", *, half: bool = False) -> None:
        self.state = state
        self.node = node
        self.half = half
        self.pushes: list[Push] = []
        state.hello(node, version=PROTOCOL_VERSION, digest="", clock=0)

    def admit(self, words: Sequence[str], counts: IntArray, contributors=None) -> IntArray:
        del contributors
        return self.state.words.admit(words, counts)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        return self.state.words.delta(since)

    def pull(self, request: PullRequest) -> PulledRows:
        assert Table.SUB not in request.ids, "for fastText alone"
        found = self.state.pull(self.node, request, half=self.half)
        if isinstance(found, list):
            assert self.node in found, "a lone node never waits for others"
            raise AheadError("the policy waits for this node's push.")
        return found

    def push(self, push: Push) -> Ack:
        self.pushes.append(push)
        return self.state.push(push)

    def idle(self) -> None:
        self.state.idle(self.node)

    def status(self) -> dict[str, Any]:
        return {}

    def finish(self) -> None: ...

    def figures(self) -> dict[str, Any]:
        return {}

    def close(self) -> None: ...

    def counts(self) -> dict[str, float]:
        """Running count of every word with a row."""
        vocabulary = self.state.vocabulary
        alive = vocabulary.alive()
        counts = np.round(vocabulary.counts(alive), 9).tolist()
        return dict(zip(vocabulary.names(alive), counts, strict=True))
