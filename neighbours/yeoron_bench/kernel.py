"""Kernel against gensim: words a second and quality at equal settings, paired and interleaved.

    yeoron bench kernel CORPUS --words 3000000 --repeats 3 --gold GOLD_DIRECTORY

CORPUS is plain text, one sentence a line (.xz is read too). gensim trains from a file
(`corpus_file`), the kernel from row numbers of the same words, lock-free on shared tables from as
many threads. Both draw windows, noise and learning rates alike; no subsampling.

On a busy machine wall time says little; so the words per second of processor time stand beside
it, and the order of the two alternates from one repeat to the next.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embedding.kernel.records import FloatArray
from embedding.models.base import LocalBlock, make_trainer
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.models.sampling import NoiseTable, keep_probabilities
from yeoron_bench.corpora import MIN_COUNT, Corpus, cut, encode, sentences
from yeoron_bench.results import facts, keep_and_print, need
from yeoron_bench.train import judged

_BLOCK = 20_000
NOISE = 2_000_000
_PEERS = ("kernel", "gensim")
GOLD = ("wordsim353.tsv", "simlex999.txt", "questions-words.txt")
_PACKAGES = ("numpy", "numba", "gensim", "scipy")


@dataclass(frozen=True)
class Timing:
    """One training: words trained, wall seconds, processor seconds, loss of a pair, vectors."""

    words: int
    wall: float
    cpu: float
    loss: float | None
    vectors: FloatArray
    names: Sequence[str]

    def rates(self) -> dict[str, float]:
        return {"wall": self.words / self.wall, "cpu": self.words / self.cpu}


class Kernel:
    """Hogwild training of the kernel on full tables."""

    def __init__(self, corpus: Corpus, config: ModelConfig, seed: int, noise: int = 0) -> None:
        random = np.random.default_rng(seed)
        rows = len(corpus.words)
        self.corpus, self.config, self.seed, self.bound = corpus, config, seed, noise
        start = random.random((rows, config.dim), dtype=np.float32)
        self.vectors: FloatArray = (start - np.float32(0.5)) / np.float32(config.dim)
        self.contexts = np.zeros_like(self.vectors)
        self.noise = NoiseTable.build(corpus.counts, config.noise_exponent)
        self.pool = self.noise.draw(NOISE, seed)
        self.keep = keep_probabilities(corpus.counts, len(corpus.tokens), config.sample)

    def train(self, threads: int, epochs: int) -> Timing:
        """Train; the tokens are split among threads, the learning rate falls with their sum."""
        runs = cut(self.corpus.sentences, _BLOCK)
        self._progress = [0] * threads
        self._loss, self._cpu = [0.0] * threads, [0.0] * threads
        self._pairs = [0] * threads
        parts = [
            runs[len(runs) * t // threads : len(runs) * (t + 1) // threads] for t in range(threads)
        ]
        workers = [
            threading.Thread(target=self._work, args=(t, part, epochs))
            for t, part in enumerate(parts)
        ]
        started = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        wall = time.perf_counter() - started
        loss = sum(self._loss) / max(sum(self._pairs), 1)
        trained = self.corpus.known * epochs
        return Timing(trained, wall, sum(self._cpu), loss, self.vectors, self.corpus.words)

    def _work(self, thread: int, runs: list[tuple[int, int]], epochs: int) -> None:
        trainer = make_trainer(self.config)
        total = len(self.corpus.tokens) * epochs
        started = time.thread_time()
        for epoch in range(epochs):
            for first, last in runs:
                rate = self.config.rate(sum(self._progress) / total)
                seed = hash((self.seed, epoch, first)) & 0x7FFFFFFF
                block = self.block(first, last, seed)
                loss = trainer.train(
                    block, self.vectors, self.contexts, learning_rate=rate, seed=seed
                )
                self._progress[thread] += len(block.tokens)
                self._loss[thread] += loss.loss_sum
                self._pairs[thread] += loss.pairs
        self._cpu[thread] = time.thread_time() - started

    def block(self, first: int, last: int, seed: int) -> LocalBlock:
        """Sentences first..last-1; with a bound on noise each block draws its own few."""
        start, end = self.corpus.sentences[first], self.corpus.sentences[last]
        return LocalBlock(
            tokens=self.corpus.tokens[start:end],
            sentences=self.corpus.sentences[first : last + 1] - start,
            keep=self.keep,
            pool=self.noise.draw(self.bound, seed) if self.bound else self.pool,
        )


def train_gensim(path: Path, config: ModelConfig, threads: int, epochs: int, seed: int) -> Timing:
    from gensim.models import Word2Vec

    model = Word2Vec(
        vector_size=config.dim,
        window=config.window,
        negative=config.negative,
        sample=config.sample,
        alpha=config.learning_rate,
        min_alpha=config.min_learning_rate,
        min_count=MIN_COUNT,
        sg=1,
        workers=threads,
        seed=seed,
    )
    model.build_vocab(corpus_file=str(path))
    known = sum(model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key)
    started, cpu = time.perf_counter(), time.process_time()
    model.train(
        corpus_file=str(path),
        total_words=model.corpus_total_words,
        total_examples=model.corpus_count,
        epochs=epochs,
    )
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    return Timing(known * epochs, wall, cpu, None, model.wv.vectors, model.wv.index_to_key)


def quality(timing: Timing, gold: Path) -> dict[str, float]:
    """gensim's own evaluation: ρ of pairs, share of analogies solved, and their mean."""
    from gensim.models import KeyedVectors

    vectors = KeyedVectors(timing.vectors.shape[1])
    vectors.add_vectors(list(timing.names), timing.vectors)
    return judged(vectors, [gold / file for file in GOLD])


def in_cache(config: ModelConfig) -> float:
    """Words per processor second when all rows lie in the first-level cache: no memory waits."""
    tokens = (np.arange(200_000) % 12).astype(np.int32)
    ends = np.arange(0, len(tokens) + 1, 40, dtype=np.int32)
    noise = np.array([0] * 12 + [1] * 28)  # no noise word is ever a target
    corpus = Corpus([str(row) for row in range(40)], noise, tokens, ends)
    kernel = Kernel(corpus, config.model_copy(update={"move": 1}), seed=1)
    return max(kernel.train(1, 1).rates()["cpu"] for _ in range(3))


def compare(
    corpus: Corpus,
    path: Path,
    config: ModelConfig,
    threads: int,
    epochs: int,
    repeats: int,
    gold: Path | None,
) -> dict[str, Any]:
    """One number of threads: `repeats` pairs of runs; rates, their paired ratios, quality."""
    rates: dict[str, list[dict[str, float]]] = {peer: [] for peer in _PEERS}
    scores: dict[str, list[dict[str, float]]] = {peer: [] for peer in _PEERS}
    losses: list[float] = []
    for repeat in range(repeats):
        for peer in _PEERS if repeat % 2 else reversed(_PEERS):
            seed = 1 + repeat
            if peer == "kernel":
                timing = Kernel(corpus, config, seed).train(threads, epochs)
                losses.append(float(timing.loss or 0.0))
            else:
                timing = train_gensim(path, config, threads, epochs, seed)
            rates[peer].append(timing.rates())
            if gold is not None:
                scores[peer].append(quality(timing, gold))
    return {
        "threads": threads,
        "rates": rates,
        "ratio": {clock: _ratio(rates, clock) for clock in ("wall", "cpu")},
        "loss": losses,
        "quality": scores,
        "quality_ratio": _ratio(scores, "mean") if gold is not None else None,
    }


def _ratio(values: dict[str, list[dict[str, float]]], name: str) -> float:
    pairs = zip(values["kernel"], values["gensim"], strict=True)
    if name == "mean":
        ours, theirs = (statistics.fmean(row[name] for row in values[side]) for side in _PEERS)
        return ours / theirs
    return statistics.median(own[name] / other[name] for own, other in pairs)


def medians(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Words a second of both sides by clock, then the mean of each judgement."""
    for clock, ratio in run["ratio"].items():
        rates = {
            peer: statistics.median(rate[clock] for rate in run["rates"][peer]) for peer in _PEERS
        }
        yield {"threads": run["threads"], "figure": f"words/s, {clock}", **rates, "ratio": ratio}
    for name in run["quality"]["kernel"][0] if run["quality"]["kernel"] else ():
        means = {
            peer: statistics.fmean(row[name] for row in run["quality"][peer]) for peer in _PEERS
        }
        ratio = means["kernel"] / means["gensim"]
        yield {"threads": run["threads"], "figure": name, **means, "ratio": ratio}


def bench_kernel(
    corpus: Path,
    threads: Sequence[int],
    words: int,
    repeats: int,
    *,
    epochs: int,
    gold: Path | None,
    results: Path,
) -> dict[str, Any]:
    """Compare, print a table, write a dated JSON and Markdown file; returns what was written.

    corpus   plain text, one sentence a line; words: how many of it are used
    threads  each is measured with as many gensim workers
    gold     directory with wordsim353.tsv, simlex999.txt, questions-words.txt; None: speed only
    """
    need("gensim", "the kernel is measured beside it")
    config = ModelConfig(sample=0.0, schedule=LearningRateSchedule.LINEAR)
    lines = list(sentences(corpus, words))
    encoded = encode(lines)
    Kernel(encode([["a", "b"] * MIN_COUNT]), config, 1).train(1, 1)  # compile before the clock runs
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.txt"
        path.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
        del lines
        runs = [compare(encoded, path, config, count, epochs, repeats, gold) for count in threads]
    flop = 6 * config.dim * (config.window + 1) * (config.negative + 1)
    report = {
        **facts("kernel", _PACKAGES),
        "config": config.model_dump(mode="json"),
        "corpus": {"file": corpus.name, "tokens": encoded.known, "vocabulary": len(encoded.words)},
        "epochs": epochs,
        "flop_per_word": flop,
        "words_per_second_in_cache": in_cache(config),
        "medians": [row for run in runs for row in medians(run)],
        "runs": runs,
    }
    keep_and_print(report, results=results)
    return report
