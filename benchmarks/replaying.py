"""A node without a network: learns a stream in one pass, with replay, and keeps a curve."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from benchmarks.dated import Stream
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.base import BlockLoss, LocalBlock, Track, make_trainer
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable, keep_probabilities
from embedding.stream.config import StreamConfig
from embedding.stream.replay import ReplayMemory, make_replay
from embedding.stream.ring import Sample

SMOOTH = 5  # blocks over which a curve is averaged before it is read


@dataclass
class Run:
    """One memory, one seed: a curve with a point a block."""

    tokens: list[int] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    prequential: list[float] = field(default_factory=list)
    kept: int = 0
    cpu: float = 0.0
    weight: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)

    def curve(self) -> FloatArray:
        """Held-out loss, each point the mean of the last `SMOOTH`."""
        sums = np.cumsum([0.0, *self.held_out])
        at = np.arange(1, len(sums))
        start = np.maximum(at - SMOOTH, 0)
        means: FloatArray = ((sums[at] - sums[start]) / (at - start)).astype(np.float32)
        return means

    def until(self, target: float) -> float | None:
        """Trained tokens until the curve first is at `target`; None: never."""
        curve = self.curve()
        below = np.flatnonzero(curve <= target)
        if not len(below):
            return None
        at = int(below[0])
        if at == 0:
            return float(self.tokens[0])
        share = (curve[at - 1] - target) / (curve[at - 1] - curve[at])
        return float(self.tokens[at - 1] + share * (self.tokens[at] - self.tokens[at - 1]))


@dataclass(frozen=True)
class Tick:
    """What a tick measured: for each sentence what the memory ranks by (0: no pair) and its key."""

    loss: BlockLoss
    tokens: int
    weights: FloatArray
    fresh: FloatArray
    drawn: FloatArray
    fresh_keys: IntArray
    drawn_keys: IntArray


class Node:
    """A node without a network: tables, memory, running counts."""

    def __init__(self, stream: Stream, config: ModelConfig, memory: ReplayMemory, seed: int):
        random = np.random.default_rng(seed)
        self.stream, self.config, self.memory, self.seed = stream, config, memory, seed
        start = random.random((len(stream.counts), config.dim), dtype=np.float32)
        self.vectors: FloatArray = (start - np.float32(0.5)) / np.float32(config.dim)
        self.contexts = np.zeros_like(self.vectors)
        self.trainer = make_trainer(config)
        self.counts = np.zeros(len(stream.counts), np.int64)

    def learn(self, at: int, priority: FloatArray | None, ratio: float) -> Tick:
        """Learn block `at` and `ratio` times as many tokens of the past."""
        block = self.stream.blocks[at]
        tokens = self.stream.rows[at][block.codes]
        np.add.at(self.counts, tokens[tokens >= 0], 1)
        sample = self.memory.sample(int(ratio * len(tokens)))
        keys = self.memory.add(tokens, block.sentences, priority)
        seed = self.seed * 1_000_003 + at
        local = self._local(tokens, block.sentences, sample, seed)
        loss = self.trainer.train(
            local,
            self.vectors,
            self.contexts,
            learning_rate=self.config.learning_rate,
            seed=seed,
        )
        figure = loss.sentence_gradient if self.memory.measure == "gradient" else loss.sentence_loss
        fresh = len(block.sentences) - 1
        if figure is None or loss.sentence_pairs is None:
            figure = np.zeros(len(local.sentences) - 1, np.float32)
        else:
            seen = loss.sentence_pairs[fresh:] > 0
            self.memory.update(sample.keys[seen], figure[fresh:][seen])
        if self.memory.measure == "gradient":
            figure = (figure / np.maximum(np.diff(local.sentences), 1)).astype(np.float32)
        weight = np.repeat(sample.weights, np.diff(sample.sentences))
        return Tick(
            loss, len(local.tokens), weight, figure[:fresh], figure[fresh:], keys, sample.keys
        )

    def _local(
        self, tokens: IntArray, sentences: CodeArray, sample: Sample, seed: int
    ) -> LocalBlock:
        noise = NoiseTable.build(self.counts, self.config.noise_exponent)
        both = np.concatenate([tokens, sample.tokens]).astype(np.int32)
        weights = None
        if self.memory.measure != "none":
            weights = np.concatenate([np.ones(len(sentences) - 1, np.float32), sample.weights])
        return LocalBlock(
            tokens=both,
            sentences=np.concatenate(
                [sentences, sample.sentences[1:] + sentences[-1]], dtype=np.int32
            ),
            keep=keep_probabilities(self.counts, float(self.counts.sum()), self.config.sample),
            pool=noise.draw(int(self.config.noise_share * len(both)), seed),
            weights=weights,
            track=Track(self.memory.measure),
        )


def run(
    stream: Stream,
    priorities: Sequence[FloatArray] | None,
    config: ModelConfig,
    settings: StreamConfig,
    *,
    ratio: float,
    seed: int,
) -> Run:
    """Learn the stream once; `priorities` of the sentences of each block, None: not known."""
    node = Node(stream, config, make_replay(settings, seed), seed)
    result, done = Run(), 0
    last = np.zeros(stream.sentences, np.float32)
    for at in range(len(stream.blocks)):
        priority = None if priorities is None else priorities[at]
        result.prequential.append(stream.fresh[at].loss(node.vectors, node.contexts))
        started = time.thread_time()
        tick = node.learn(at, priority, ratio)
        result.cpu += time.thread_time() - started
        done += tick.tokens
        result.kept += tick.loss.words
        result.tokens.append(done)
        result.held_out.append(stream.held_out.loss(node.vectors, node.contexts))
        if len(tick.weights):
            result.weight.append(float(tick.weights.mean()))
        if 2 * at >= len(stream.blocks) and tick.fresh.any():
            if priority is not None:
                result.first.append(_rank(priority, tick.fresh))
            result.again.append(_rank(last[tick.drawn_keys], tick.drawn))
        is_held = tick.fresh_keys >= 0
        last[tick.fresh_keys[is_held]] = tick.fresh[is_held]
    return result


def _rank(estimated: FloatArray, measured: FloatArray) -> float:
    """Spearman's rank correlation over the sentences that have both figures."""
    both = (estimated > 0) & (measured > 0)
    if len(set(estimated[both].tolist())) < 2:
        return 0.0
    return float(stats.spearmanr(estimated[both], measured[both]).statistic)
