"""The kernel that trains on a GPU, on text that lies there: words a second, its share of what the
card's memory and L2 cache move, and the similarity of its vectors beside the CPU kernel's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from embedding.evaluation.gold import PairGold, read_gold
from embedding.evaluation.judging import similarity
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.base import Trainer
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.server.rows.torchdevice import TorchDevice
from yeoron_bench.corpora import Corpus, cut
from yeoron_bench.kernel import Kernel
from yeoron_bench.results import hardware

BLOCK_TOKENS = 250_000
"""Tokens between two looks at the learning rate."""


def rho(words: Sequence[str], vectors: FloatArray, gold: Sequence[Path]) -> dict[str, float]:
    """Spearman's ρ of each gold set of pairs, and their mean."""
    row_of = {word: at for at, word in enumerate(words)}

    def rows(asked: Sequence[str]) -> IntArray:
        return np.array([row_of.get(word, -1) for word in asked], np.int64)

    sets = {file.stem: read_gold(file) for file in gold}
    rhos = {
        name: similarity(vectors, rows, pairs).rho
        for name, pairs in sets.items()
        if isinstance(pairs, PairGold)
    }
    return {**rhos, "mean": statistics.fmean(rhos.values())} if rhos else {}


class Resident:
    """Text, noise and tables on the GPU, the learning rate falling as on the CPU."""

    def __init__(
        self, corpus: Corpus, trainer: Trainer, config: ModelConfig, seed: int, device: TorchDevice
    ) -> None:
        self.config, self.corpus, self.seed = config, corpus, seed
        host = Kernel(corpus, config, seed)
        self._trainer = trainer
        self._device = device
        self.vectors = torch.from_numpy(host.vectors).to(device.torch)
        self.contexts = torch.zeros_like(self.vectors)
        noise = host.noise, np.arange(len(corpus.words), dtype=np.int64)
        self._blocks: list[Any] = []
        for first, last in cut(corpus.sentences, BLOCK_TOKENS):
            block = replace(host.block(first, last, seed), noise=noise)
            on_device: dict[str, Any] = {
                name: torch.from_numpy(getattr(block, name)).to(device.torch)
                for name in ("tokens", "sentences", "keep", "pool")
            }
            self._blocks.append(replace(block, **on_device))

    def train(self) -> tuple[float, int]:
        """One pass: seconds, pairs."""
        done = pairs = 0
        self._device.wait()
        began = time.perf_counter()
        for at, block in enumerate(self._blocks):
            rate = self.config.rate(done / len(self.corpus.tokens))
            tables: Any = self.vectors, self.contexts
            loss = self._trainer.train(block, *tables, learning_rate=rate, seed=self.seed + at)
            done += len(block.tokens)
            pairs += loss.pairs
        self._device.wait()
        return time.perf_counter() - began, pairs


def kernels(
    corpus: Corpus,
    model: str,
    gold: Sequence[Path],
    seeds: Sequence[int],
    device: TorchDevice,
    make: Callable[[ModelConfig], Trainer],
) -> dict[str, list[Any]]:
    """Words/s, bytes/s and similarity of the kernel for GPUs, and of the CPU's on all cores.

    make  the kernel for GPUs, compiled
    """
    config = ModelConfig(model=model, schedule=LearningRateSchedule.LINEAR)
    runs: dict[str, list[Any]] = {"gpu": [], "cpu": []}
    for seed in seeds:
        here = Resident(corpus, make(config), config, seed, device)
        seconds, pairs = here.train()
        # A context's row is read and added to; a window's own and noise rows are, too.
        targets = pairs if model == "cbow" else pairs / (config.window + 1)
        sides = 1 if model == "cbow" else 2
        inputs = pairs * (config.window + 1) if model == "cbow" else pairs
        rows = 2 * (inputs + targets * (1 + sides * config.negative))
        figures = rho(corpus.words, here.vectors.cpu().numpy(), gold)
        rate = corpus.known / seconds
        moved = rows * 4 * config.dim / seconds
        runs["gpu"].append({"words_per_s": rate, "bytes_per_s": moved, "similarity": figures})
        timing = Kernel(corpus, config, seed).train(threads=hardware()["cores"], epochs=1)
        figures = rho(corpus.words, timing.vectors, gold)
        runs["cpu"].append({"words_per_s": timing.rates()["wall"], "similarity": figures})
    return runs


def kernel_rows(
    kernels: Mapping[str, Mapping[str, Any]], card: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Medians of `kernels` by model, and which share they move of what `card` copies a second
    (`yeoron_bench.gpu.copies`), where that is known."""
    rows = []
    for model, sides in kernels.items():
        for way, runs in sides.items():
            rate = statistics.median(run["words_per_s"] for run in runs)
            row = {"kernel": f"{model}, {way}", "words_per_s": rate}
            for name in ("copy_bytes_per_s", "l2_bytes_per_s") if way == "gpu" else ():
                moved = statistics.median(run["bytes_per_s"] for run in runs)
                row[f"share of {name}"] = moved / card[name] if card[name] else None
            for name in runs[0]["similarity"]:
                row[name] = statistics.fmean(run["similarity"][name] for run in runs)
            rows.append(row)
    return rows
