"""Pushes, clients and servers for the tests of the server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from embedding.exchange.client import ParameterClient
from embedding.exchange.payload import BlockCounts, RowDelta
from embedding.exchange.protocol import Ack, PullRequest, Push, nothing_read
from embedding.kernel.records import Phrase, SourceProgress, Table
from embedding.worker.process.making import connect as greet

sys.path.insert(0, str(Path(__file__).parent))
from named import QUICK


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@dataclass
class Node:
    """A client that keeps its own sequence and clock, as a worker does."""

    client: ParameterClient
    name: str
    sequence: int = 0
    clock: int = 0
    ids: np.ndarray = field(default_factory=ints)

    def words(self, *words: str, counts: int = 10) -> np.ndarray:
        self.ids = self.client.admit(list(words), np.full(len(words), counts, dtype=np.int64))
        return self.ids

    def push(
        self,
        deltas: tuple[RowDelta, ...] = (),
        counts: BlockCounts | None = None,
        *,
        window: int = 0,
        source: str = "뉴스",
        published: float | None = None,
        digest: str = "",
        phrases: tuple[Phrase, ...] = (),
    ) -> Ack:
        self.sequence += 1
        counts = nothing_read() if counts is None else counts
        tokens = int(np.sum(counts.counts))
        seen = float(window) if published is None else published
        progress = (SourceProgress(source, 1, tokens, seen, window, (1.0,)),)
        push = Push(
            self.name,
            self.sequence,
            self.clock,
            deltas,
            counts,
            progress,
            tokens=tokens,
            loss_sum=1.0,
            pairs=1,
            tokenizer_digest=digest,
            phrases=phrases,
        )
        ack = self.client.push(push)
        self.clock = ack.clock
        return ack

    def pull(self, vectors=None, contexts=None, grams=None, **more):
        asked = {Table.IN: self.ids if vectors is None else vectors}
        asked |= {t: v for t, v in ((Table.OUT, contexts), (Table.SUB, grams)) if v is not None}
        rows = self.client.pull(PullRequest(asked, clock=self.clock, **more))
        self.clock = rows.clock
        return rows


@pytest.fixture
def connect() -> Iterator[Callable[..., Node]]:
    """A connected node: `connect(server, "n0")`."""
    with ExitStack() as stack:

        def open_(server, name: str = "n0", *, digest: str = "", config=QUICK) -> Node:
            client = greet(server.location, node=name, config=config, config_digest=digest)
            stack.callback(client.close)
            welcome = client.welcome
            return Node(client, name, welcome.sequence, welcome.clock)

        yield open_


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request) -> str:
    """Each device that is here."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return request.param
