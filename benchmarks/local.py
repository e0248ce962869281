"""A parameter server and a node in one process, without a network: the real ones otherwise."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embedding.exchange.contributors import Contributors
from embedding.exchange.protocol import (
    PROTOCOL_VERSION,
    Ack,
    PulledRows,
    PullRequest,
    Push,
    VocabularyDelta,
    Welcome,
)
from embedding.kernel.records import FloatArray, IntArray, Table, TimeArray, TokenBlock
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Content
from embedding.server.recovery.restoring import assemble, collect, restore
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from embedding.server.words.inferred import IdRows
from embedding.snapshots.nearness import sureness
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.words.lookahead import LookAhead

NODE = "n0"
REPLAYED = 1_000_000
FRESH_ROWS = {"noise_share": 6.0, "move": 6}
"""Noise as fresh as gensim's: each noise row serves a few pairs instead of a hundred. Rows travel
for it, which a stream can afford and `yeoron train` by default cannot."""
Sentences = Sequence[Sequence[str]]


class Line:
    """What a learner asks a server for. Nothing is scored: that would cost time, not quality."""

    def __init__(self, state: ServerState, node: str = NODE) -> None:
        self._state, self._node = state, node
        self.welcome = state.hello(node, version=PROTOCOL_VERSION, digest="", clock=0)

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        del contributors
        return self._state.words.admit(words, counts)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        return self._state.words.delta(since)

    def pull(self, request: PullRequest) -> PulledRows:
        rows = self._state.pull(self._node, request)
        if isinstance(rows, list):
            raise AssertionError("a lone node never waits for others")
        return rows

    def push(self, push: Push) -> Ack:
        return self._state.push(push)

    def idle(self) -> None:
        self._state.idle(self._node)

    def status(self) -> dict[str, Any]:
        return {}

    def finish(self) -> None: ...

    def figures(self) -> dict[str, Any]:
        return {}

    def close(self) -> None: ...


@dataclass(frozen=True)
class Words:
    """What a model knows: words, float32 [n, dim] vectors and contexts, running counts."""

    names: list[str]
    vectors: FloatArray
    contexts: FloatArray
    counts: TimeArray


class Local:
    """A model that learns sentences as they come; `content` goes on from another one's state."""

    def __init__(
        self,
        model: ModelConfig,
        node: NodeConfig,
        server: ServerConfig,
        content: Content | None = None,
    ) -> None:
        self.state = ServerState(
            server, SyncConfig(policy="asp"), RowShape(model.width, seed=model.seed)
        )
        if content is not None:
            restore(self.state, content, "memory")
        replay = UniformReplay(REPLAYED, model.seed) if node.replay_ratio else None
        self.learner = Learner(
            Line(self.state),
            make_trainer(model),
            replay,
            LearnerSetup(node=NODE, model=model, config=node, calendar=server.calendar),
            welcome=Welcome(
                self.state.machine.board.members[NODE].clock,
                self.state.ledger.of(NODE).accepted,
                min_count=server.min_count,
                rare_mentions=server.rare_mentions,
            ),
        )
        self._blocks = 0

    def learn(
        self,
        sentences: Sentences,
        moments: Sequence[float] | None = None,
        passed: TimeArray | None = None,
    ) -> None:
        """One tick; of each sentence Unix seconds, and the share of its window before it."""
        self.learner.learn([self.block(sentences, moments, passed)])

    def follow(self, blocks: Iterator[TokenBlock], ahead: int) -> None:
        """Learn blocks, looking `ahead` tokens ahead as the node of a corpus does."""
        lexicon = self.learner.lexicon
        look_ahead = LookAhead(ahead, self.learner.setup.calendar, threading.Event())
        lexicon.look_ahead = look_ahead
        for tick in look_ahead.ticks(([block] for block in blocks), lexicon.has):
            if tick:
                self.learner.learn(tick)
        lexicon.look_ahead = None

    def block(
        self,
        sentences: Sentences,
        moments: Sequence[float] | None = None,
        passed: TimeArray | None = None,
    ) -> TokenBlock:
        """Sentences as a block, as for `learn`."""
        self._blocks += 1
        documents = [sentences] if moments is None else [[sentence] for sentence in sentences]
        published = [0.0] if moments is None else moments
        keys = [f"{self._blocks} {at}" for at in range(len(documents))]
        block = TokenBlock.build("corpus", documents, published=published, keys=keys)
        return block if passed is None else replace(block, passed=passed)

    def words(self, *, trained: bool = False) -> Words:
        """Vectors as readers get them, or with `trained` as they are trained."""
        vocabulary, tables = self.state.vocabulary, self.state.tables
        ids = vocabulary.alive()
        slots, counts = vocabulary.slots(ids, "words"), vocabulary.counts(ids)
        rows = [tables.read(table, slots) for table in (Table.IN, Table.OUT)]
        sums = self.state.accounts.rare.held(ids, counts)
        taught = self.state.accounts.rare.taught()
        reading = taught.reading(*(IdRows(ids, values) for values in rows))
        if reading is not None and not trained:
            rows[0][sums.at] = sums.over(rows[0][sums.at], reading)
        return Words(vocabulary.names(ids), rows[0], rows[1], counts)

    def content(self) -> Content:
        """The server's whole state, as a checkpoint has it."""
        state = self.state
        with state.lock:
            collected = collect(state)
            copy = state.tables.copy(state.vocabulary.rows, accumulators=False)
        copy.finish(state.lock)
        return assemble(collected, copy)


def ticks(sentences: Sentences, tokens: int) -> Iterator[Sentences]:
    """Sentences of about `tokens` tokens at a time."""
    waiting: list[Sequence[str]] = []
    size = 0
    for sentence in sentences:
        waiting.append(sentence)
        size += len(sentence)
        if size >= tokens:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def nearest_ranks(
    words: Words, asked: Sequence[str], wanted: Sequence[str], *, cosine: bool = False
) -> IntArray:
    """Of each pair, the place of the wanted word among the neighbours of the asked one, from 0.

    By nearness, or by the bare cosine; a word that is not known gives the number of words.
    """
    place = {word: i for i, word in enumerate(words.names)}
    unit = words.vectors / np.maximum(np.linalg.norm(words.vectors, axis=1, keepdims=True), 1e-12)
    scale = np.ones(len(unit), np.float32) if cosine else sureness(words.counts)
    ranks = np.full(len(asked), len(words.names), dtype=np.int64)
    for i, (asked_word, other) in enumerate(zip(asked, wanted, strict=True)):
        if asked_word in place and other in place:
            near = (unit @ unit[place[asked_word]]) * scale
            near[place[asked_word]] = -2.0
            ranks[i] = int((near > near[place[other]]).sum())
    return ranks
