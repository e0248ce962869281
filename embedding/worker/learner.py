"""One tick of a node: score fresh documents, train on them and on replayed ones, push the delta.

The order is what the numbers rest on: the server scores pairs of the fresh documents on its tables
before it has seen the push that learns them (prequential evaluation, Dawid 1984).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from embedding.errors import YeoronError
from embedding.exchange.protocol import Ack, Push, Rows
from embedding.models.base import Trainer
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable, keep_probabilities
from embedding.records import (
    CodeArray,
    FloatArray,
    IntArray,
    RowDelta,
    ScorePairs,
    Table,
    TokenBlock,
    WindowUnit,
)
from embedding.stream.replay import ReplayMemory
from embedding.worker.config import NodeConfig
from embedding.worker.counting import count_words, progress
from embedding.worker.lexicon import Lexicon, VocabularySource
from embedding.worker.planning import Plan, join, plan
from embedding.worker.scoring import PairSampler


class Server(VocabularySource, Protocol):
    """What the learner asks the parameter server for."""

    def pull(
        self, vectors: IntArray, contexts: IntArray, *, clock: int, score: ScorePairs | None = None
    ) -> Rows:
        """Rows of both tables, as the policy lets them be read."""
        ...

    def push(self, push: Push) -> Ack:
        """Apply a delta once."""
        ...


@dataclass(frozen=True)
class Learnt:
    """What one tick learnt: fresh tokens, trained tokens (with replay), loss, who may be told."""

    keys: tuple[str, ...]
    fresh_tokens: int
    trained_tokens: int
    loss_sum: float
    pairs: int
    ack: Ack


class Learner:
    """Turns token blocks into pushes; owns the lexicon, the replay memory and the node's clock."""

    def __init__(
        self,
        server: Server,
        trainer: Trainer,
        replay: ReplayMemory | None,
        *,
        node: str,
        model: ModelConfig,
        config: NodeConfig,
        unit: WindowUnit,
    ) -> None:
        self.server = server
        self.trainer = trainer
        self.replay = replay
        self.node = node
        self.model = model
        self.config = config
        self.unit = unit
        self.lexicon = Lexicon()
        self.clock = 0
        self.sequence = 0
        self._sampler = PairSampler(model.window, config.score_pairs, model.negative)
        self._noise: NoiseTable | None = None
        self._noise_at = 0.0
        self._refreshes = 0

    def learn(self, blocks: Sequence[TokenBlock]) -> Learnt:
        """Learn from `blocks` (each of one source); one push, one tick of the clock."""
        self._refresh()
        coded = [(self.lexicon.encode(block, self.server), block.sentences) for block in blocks]
        if self._noise is None:
            self._refresh(now=True)
        seed = hash_seed(self.model.seed, self.node, self.sequence + 1)
        noise = self._draw(seed)
        scores = self._scores(blocks, coded, noise, seed)
        ids, sentences = self._with_replay(coded)
        planned = plan(ids, sentences, noise, self._keep(ids))
        rows = self._pull(planned, scores)
        deltas, loss_sum, pairs = self._train(planned, rows, seed)
        self.sequence += 1
        trained = int((ids >= 0).sum())
        ack = self.server.push(
            Push(
                node=self.node,
                sequence=self.sequence,
                clock=self.clock,
                deltas=deltas,
                counts=count_words(blocks, self.unit),
                progress=progress(blocks, self.unit, time.time()),
                tokens=trained,
                loss_sum=loss_sum,
                pairs=pairs,
                tokenizer_digest=blocks[0].tokenizer_digest if blocks else "",
            )
        )
        self.clock = ack.clock
        self._remember(coded)
        return Learnt(
            keys=tuple(key for block in blocks for key in block.keys),
            fresh_tokens=sum(block.n_tokens for block in blocks),
            trained_tokens=trained,
            loss_sum=loss_sum,
            pairs=pairs,
            ack=ack,
        )

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands, after it refused a push or lost its state."""
        self.clock = clock
        self.sequence = sequence
        self.lexicon.refresh(self.server, whole=True)

    def _refresh(self, *, now: bool = False) -> None:
        """Look at the server's vocabulary now and then, and renew the noise distribution."""
        moment = time.monotonic()
        if not now and moment - self._noise_at < self.config.vocabulary_seconds:
            return
        # New words come as a difference; every tenth time all counts are read again, as those of
        # known words have moved too.
        self.lexicon.refresh(self.server, whole=self._refreshes % 10 == 0)
        self._refreshes += 1
        self._noise_at = moment
        self._noise = (
            NoiseTable.build(self.lexicon.counts, self.model.noise_exponent)
            if self.lexicon.counts.any()
            else None
        )

    def _draw(self, seed: int) -> IntArray:
        if self._noise is None:
            return np.empty(0, dtype=np.int64)
        return self._noise.draw(self.model.pool, seed).astype(np.int64)

    def _scores(
        self,
        blocks: Sequence[TokenBlock],
        coded: list[tuple[IntArray, CodeArray]],
        noise: IntArray,
        seed: int,
    ) -> list[ScorePairs]:
        rng = np.random.default_rng(seed)
        found = [
            self._sampler.sample(block.source, ids, sentences, block.documents, noise, rng)
            for block, (ids, sentences) in zip(blocks, coded, strict=True)
        ]
        return [pairs for pairs in found if pairs is not None]

    def _with_replay(self, coded: list[tuple[IntArray, CodeArray]]) -> tuple[IntArray, CodeArray]:
        parts = list(coded)
        fresh = sum(len(ids) for ids, _ in coded)
        wanted = int(fresh * self.config.replay_ratio)
        if self.replay is not None and wanted:
            sample = self.replay.sample(wanted)
            if len(sample.tokens):
                parts.append((sample.tokens, sample.sentences))
        return join(parts)

    def _remember(self, coded: list[tuple[IntArray, CodeArray]]) -> None:
        if self.replay is None:
            return
        for ids, sentences in coded:
            if len(ids):
                self.replay.add(ids, sentences)

    def _keep(self, ids: IntArray) -> FloatArray:
        words = np.unique(ids[ids >= 0])
        counts = self.lexicon.counts
        return keep_probabilities(counts[words], float(counts.sum()), self.model.sample)

    def _pull(self, planned: Plan, scores: list[ScorePairs]) -> Rows:
        """Pull the block's rows; every source's pairs are scored on the tables as they are now."""
        none = np.empty(0, dtype=np.int64)
        for pairs in scores[1:]:
            self.server.pull(none, none, clock=self.clock, score=pairs)
        return self.server.pull(
            planned.vectors,
            planned.contexts,
            clock=self.clock,
            score=scores[0] if scores else None,
        )

    def _train(
        self, planned: Plan, rows: Rows, seed: int
    ) -> tuple[tuple[RowDelta, ...], float, int]:
        if not len(planned.vectors):
            return (), 0.0, 0
        vectors = np.array(rows.vectors, dtype=np.float32, order="C")
        contexts = np.ascontiguousarray(rows.contexts[planned.order])
        loss = self.trainer.train(
            planned.block,
            vectors,
            contexts,
            learning_rate=self.model.rate(0.0),
            seed=seed,
        )
        if not np.isfinite(loss.loss_sum):
            raise YeoronError(
                f"{self.node}: the loss is not finite (learning_rate {self.model.learning_rate}); "
                "set a smaller model.learning_rate."
            )
        moved = np.empty_like(contexts)
        moved[planned.order] = contexts
        deltas = (
            RowDelta(Table.IN, planned.vectors, vectors - rows.vectors),
            RowDelta(Table.OUT, planned.contexts, moved - rows.contexts),
        )
        return deltas, loss.loss_sum, loss.pairs


def hash_seed(seed: int, node: str, sequence: int) -> int:
    """A seed of its own for every node and block, the same in every run."""
    mixed = np.random.SeedSequence([seed, *node.encode(), sequence]).generate_state(1, np.uint64)
    return int(mixed[0] >> np.uint64(1))
