"""How long the ticks of a node take when a window begins and the past is read again.

    python -m benchmarks windowbegin

A real client and a parameter server in a process of its own, on loopback. A node learns Zipf
tokens of one month until it remembers `--past` of them, then blocks that come every so many
seconds, first of that month and then of the next. Told of each month are the seconds of its ticks,
by the clock and of the node's processor time, and the lag: from a block's coming until its push was
acknowledged.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kept import RESULTS
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.usage import UsageReader
from yeoron_bench.results import facts, hardware, keep
from yeoron_bench.wire import PLAIN, serving

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch")
MONTHS = (1_700_000_000.0, 1_703_000_000.0)
SENTENCE, DOCUMENT, LARGE = 16, 16, 65_536
"""Tokens of a sentence, sentences of a document, tokens of a tick that only fills the past."""


class Tick(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float
    lag: float


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
    calendar = Calendar(WindowUnit.MONTH)
    past = PastTexts(calendar, given.past, config.past_windows)
    return Learner(
        client,
        make_trainer(model),
        replay,
        LearnerSetup(node="bench", model=model, config=config, calendar=calendar),
        welcome=replace(client.hello(), active=1),
        usage=UsageReader.of(model, True, past),
    )


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """The ticks before and after a window begins."""
    text = Text(given.words, 1)
    with (
        serving(PLAIN.model_copy(update={"threads": 1}), given.dim) as (_, location),
        ParameterClient(location, node="bench", config=ExchangeConfig()) as client,
    ):
        learner = learner_of(client, given)
        for _ in range(-(-given.past // LARGE)):
            learner.learn([text.block(LARGE, MONTHS[0])])
        before, after = (played(learner, text, month, given) for month in MONTHS)
        words = len(learner.lexicon)
    return {
        "words": words,
        "before": summary(before),
        "after": summary(after),
        "ticks": after,
    }


def played(learner: Learner, text: Text, month: float, given: argparse.Namespace) -> list[Tick]:
    """Learn blocks as they come."""
    blocks = [text.block(given.block, month) for _ in range(given.ticks)]
    runs = []
    start = time.perf_counter()
    for at, block in enumerate(blocks):
        comes = start + at * given.every
        time.sleep(max(0.0, comes - time.perf_counter()))
        began, used = time.perf_counter(), time.process_time()
        learner.learn([block])
        now = time.perf_counter()
        seconds = now - began, time.process_time() - used, now - comes
        runs.append(Tick(*(round(each, 4) for each in seconds)))
    return runs


def summary(ticks: Sequence[Tick]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, seconds in zip(Tick._fields, zip(*ticks, strict=True), strict=True):
        ordered = sorted(seconds)
        figures |= {
            f"{name}_median_s": round(statistics.median(ordered), 4),
            f"{name}_p95_s": ordered[int(0.95 * len(ordered))],
            f"{name}_longest_s": ordered[-1],
        }
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--past", type=int, default=2_000_000, help="tokens that are remembered")
    parser.add_argument("--words", type=int, default=50_000, help="of the Zipf text")
    parser.add_argument("--block", type=int, default=2_048, help="tokens of a tick")
    parser.add_argument("--ticks", type=int, default=80, help="of each month")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two blocks")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    load = hardware()
    runs = [measure(given) for _ in range(given.repeats)]
    for run in runs:
        print(run)
    print(
        keep(
            {**facts("windowbegin", PACKAGES, load), "setting": vars(given), "runs": runs},
            results=RESULTS,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
