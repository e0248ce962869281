"""How may deltas of nodes that train at the same time be added up? Sum, mean, or by share.

    python -m benchmarks combining CORPUS --nodes 4 --block 12500 --gold GOLD_DIRECTORY

In one process and without a network: in each round every node reads the same tables, trains a
block of its own, and all deltas are added up by one of the rules of `worker/learning`.
One node is the sequential training that the others are held against. The last figure of `loss`
that is not finite means that the way diverges.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import RESULTS
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.models.base import BlockLoss, LocalBlock, make_trainer
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.models.sampling import NoiseTable
from embedding.worker.learning.combining import Usual, share, steps_of
from yeoron_bench.corpora import Corpus, cut, encode, sentences
from yeoron_bench.kernel import Timing, quality
from yeoron_bench.results import ended, facts, keep

Delta = tuple[IntArray, FloatArray, IntArray, FloatArray]
PACKAGES = ("numpy", "numba", "gensim")


class Nodes:
    """Some nodes over one pair of tables."""

    def __init__(self, corpus: Corpus, config: ModelConfig, nodes: int, curvature: float) -> None:
        random = np.random.default_rng(config.seed)
        rows = len(corpus.words)
        self.corpus, self.config, self.nodes, self.curvature = corpus, config, nodes, curvature
        start = random.random((rows, config.dim), dtype=np.float32)
        self.vectors: FloatArray = (start - np.float32(0.5)) / np.float32(config.dim)
        self.contexts = np.zeros_like(self.vectors)
        self.losses: list[tuple[float, int]] = []
        self._noise = NoiseTable.build(corpus.counts, config.noise_exponent)
        self._trainer = make_trainer(config)

    def train(self, block: int, how: str) -> None:
        """Train on the whole corpus, `block` tokens a node and round."""
        runs = cut(self.corpus.sentences, block)
        for first in range(0, len(runs), self.nodes):
            rate = self.config.rate(first / len(runs))
            deltas = [self._learn(run, rate, how) for run in runs[first : first + self.nodes]]
            for words, vectors, others, contexts in deltas:
                self.vectors[words] += vectors
                self.contexts[others] += contexts

    def _learn(self, run: tuple[int, int], rate: float, how: str) -> Delta:
        block, words, others = self._block(*run)
        vectors, contexts = self.vectors[words], self.contexts[others]
        before = vectors.copy(), contexts.copy()
        loss = self._trainer.train(block, vectors, contexts, learning_rate=rate, seed=run[0])
        self.losses.append((loss.loss_sum, loss.pairs))
        moved = [vectors - before[0], contexts - before[1]]
        if how == "mean":
            moved = [delta / np.float32(self.nodes) for delta in moved]
        elif how == "share":
            shares = self._shares(block, loss, rate * self.curvature, others)
            moved = [delta * each[:, None] for delta, each in zip(moved, shares, strict=True)]
        return words, moved[0], others, moved[1]

    def _shares(
        self, block: LocalBlock, loss: BlockLoss, scale: float, others: IntArray
    ) -> list[FloatArray]:
        """Of a block's rows of both tables."""
        counts = self.corpus.counts.astype(np.float64)
        usual = Usual.of(counts, others, self.config.noise_exponent, self._noise)
        steps = steps_of(block, loss, self.config, scale, usual)
        return [share(steps[table], self.nodes) for table in (Table.IN, Table.OUT)]

    def _block(self, first: int, last: int) -> tuple[LocalBlock, IntArray, IntArray]:
        corpus = self.corpus
        start, end = corpus.sentences[first], corpus.sentences[last]
        tokens = corpus.tokens[start:end]
        pool = self._noise.draw(max(8, round(len(tokens) * self.config.noise_share)), first)
        words = np.unique(tokens[tokens >= 0]).astype(np.int64)
        others = np.concatenate([words, np.setdiff1d(pool, words)])
        local = np.full(len(corpus.words) + 1, -1, np.int32)
        local[others] = np.arange(len(others), dtype=np.int32)
        block = LocalBlock(
            tokens=local[tokens],
            sentences=corpus.sentences[first : last + 1] - start,
            keep=np.ones(len(words), np.float32),
            pool=local[pool],
            ids=others,
        )
        return block, words, others


def measure(
    corpus: Corpus, nodes: int, block: int, how: str, curvature: float, gold: Path | None, seed: int
) -> dict[str, Any]:
    """One training: loss of its last tenth, quality."""
    config = ModelConfig(sample=0.0, schedule=LearningRateSchedule.LINEAR, seed=seed)
    trained = Nodes(corpus, config, nodes, curvature)
    began = time.process_time()
    with np.errstate(all="ignore"):
        trained.train(block, how)
    figures: dict[str, Any] = {"nodes": nodes, "block": block, "how": how, "seed": seed}
    sums = np.asarray(trained.losses[-max(1, len(trained.losses) // 10) :])
    figures["loss"] = float(sums[:, 0].sum() / max(sums[:, 1].sum(), 1.0))
    figures["cpu_seconds"] = time.process_time() - began
    if gold is not None and bool(np.isfinite(trained.vectors).all()):
        timing = Timing(0, 1.0, 1.0, None, trained.vectors, corpus.words)
        figures["quality"] = quality(timing, gold)
    return figures


def bench_combining(
    corpus: Path,
    *,
    nodes: Sequence[int] = (2, 4),
    block: int = 25_000,
    words: int = 12_400_000,
    curvature: float = 0.03,
    seeds: int = 1,
    gold: Path | None = None,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Compare the rules for some numbers of nodes; write a dated JSON file and print each run."""
    encoded = encode(list(sentences(corpus, words)))
    plans = [(1, "sum"), *((n, how) for n in nodes for how in ("sum", "mean", "share"))]
    runs = []
    for seed in range(1, seeds + 1):
        for n, how in plans:
            runs.append(measure(encoded, n, block, how, curvature, gold, seed))
            mean = runs[-1].get("quality", {}).get("mean", float("nan"))
            loss = runs[-1]["loss"]
            print(f"{n} nodes  {how:<6} loss {loss:8.4f}  quality {mean:.4f}  seed {seed}")
    report = {
        **facts("combining", PACKAGES),
        "corpus": {"file": corpus.name, "tokens": encoded.known, "vocabulary": len(encoded.words)},
        "curvature": curvature,
        "runs": runs,
    }
    keep(report, results=results)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--block", type=int, default=25_000)
    parser.add_argument("--words", type=int, default=12_400_000, help="words of the corpus to use")
    parser.add_argument("--curvature", type=float, default=0.03)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--gold", type=Path, help="directory of the gold sets; none: loss only")
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_combining(
            given.corpus,
            nodes=given.nodes,
            block=given.block,
            words=given.words,
            curvature=given.curvature,
            seeds=given.seeds,
            gold=given.gold,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
