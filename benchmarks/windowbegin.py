"""How long the ticks of a node take when a window begins and the past is read again.

    python -m benchmarks.windowbegin

A real client and a parameter server in a process of its own, on loopback. A node learns Zipf
tokens of one month until it remembers `--past` of them, then those of the next month in small
ticks, as a stream brings them. Told are the times of these ticks, and of as many before them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import RESULTS, facts, hardware, keep
from benchmarks.wire import process
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.models import ModelConfig, make_trainer
from embedding.records import TokenBlock, WindowUnit
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.learner import Learner
from embedding.worker.past import PastTexts
from embedding.worker.usage import UsageReader

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch")
MONTHS = (1_700_000_000.0, 1_703_000_000.0)
SENTENCE, DOCUMENT, LARGE = 16, 16, 65_536
"""Tokens of a sentence, sentences of a document, tokens of a tick that only fills the past."""


class Text:
    """Documents of Zipf tokens."""

    def __init__(self, words: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        weights = 1 / np.arange(1, words + 1)
        self._chances = np.cumsum(weights / weights.sum())
        self._names = np.array([f"w{i}" for i in range(words)])
        self._documents = 0

    def block(self, tokens: int, moment: float) -> TokenBlock:
        documents = max(1, tokens // (SENTENCE * DOCUMENT))
        size = (documents, DOCUMENT, SENTENCE)
        drawn = np.searchsorted(self._chances, self._random.random(size))
        first, self._documents = self._documents, self._documents + documents
        return TokenBlock.build(
            "source",
            self._names[drawn].tolist(),
            published=[moment] * documents,
            keys=[str(key) for key in range(first, self._documents)],
        )


def learner_of(client: ParameterClient, given: argparse.Namespace) -> Learner:
    model, config = ModelConfig(dim=given.dim, seed=1), NodeConfig()
    replay = UniformReplay(200_000, 1)
    unit = WindowUnit.MONTH
    learner = Learner(
        client, make_trainer(model), replay, node="bench", model=model, config=config, unit=unit
    )
    welcome = client.hello()
    learner.begin(welcome.clock, welcome.sequence, welcome.min_count, welcome.young_mentions)
    past = PastTexts(unit, given.past, config.past_windows)
    learner.usage = UsageReader.of(model, unit, True, past)
    return learner


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the ticks before and after a window begins, by the clock and of the processor."""
    text = Text(given.words, 1)
    with (
        process("--serve", str(given.dim), "--threads", "1") as (_, location),
        ParameterClient(location, node="bench", config=ExchangeConfig()) as client,
    ):
        learner = learner_of(client, given)
        for _ in range(-(-given.past // LARGE)):
            learner.learn([text.block(LARGE, MONTHS[0])])
        before, after = (
            [timed(learner, text.block(given.block, month)) for _ in range(given.ticks)]
            for month in MONTHS
        )
        words = len(learner.lexicon)
    return {
        "words": words,
        "before": summary(before),
        "after": summary(after),
        "first_ticks": after[: given.ticks // 4],
    }


def timed(learner: Learner, block: TokenBlock) -> tuple[float, float]:
    began, used = time.perf_counter(), time.process_time()
    learner.learn([block])
    return round(time.perf_counter() - began, 4), round(time.process_time() - used, 4)


def summary(ticks: Sequence[tuple[float, float]]) -> dict[str, float]:
    found = {}
    for name, seconds in zip(("wall", "cpu"), zip(*ticks, strict=True), strict=True):
        ordered = sorted(seconds)
        found |= {
            f"{name}_median_s": statistics.median(ordered),
            f"{name}_longest_s": ordered[-1],
            f"{name}_all_s": round(sum(ordered), 3),
        }
    return found


def main(results: Path = RESULTS) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--past", type=int, default=2_000_000, help="tokens that are remembered")
    parser.add_argument("--words", type=int, default=50_000, help="of the Zipf text")
    parser.add_argument("--block", type=int, default=2_048, help="tokens of a tick")
    parser.add_argument("--ticks", type=int, default=300)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    load = hardware()
    runs = [measure(given) for _ in range(given.repeats)]
    for run in runs:
        print(run)
    print(
        keep(
            {**facts("windowbegin", PACKAGES, load), "setting": vars(given), "runs": runs},
            results=results,
        )
    )


if __name__ == "__main__":
    main()
