"""How long a checkpoint holds training up: at most 200 ms at 500,000 words of dimension 128.

    python -m benchmarks checkpoint

A server in a process of its own and a trainer that pulls and pushes blocks of rows without a
pause, over Flight on loopback. The trainer times each of its requests; `lock` is the longest time
that the server held its lock for the checkpoint, as its status tells.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import RESULTS
from benchmarks.vocabulary import names
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.records import IntArray, SourceProgress, Table
from embedding.server.config import ServerConfig
from yeoron_bench.results import facts, free_port, keep

BATCH = 50_000
BLOCK = 8_192
"""Rows of each table that a block of the trainer moves."""
SOURCES = ("news", "board", "comments")
SERVE = """
import sys
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer
ParameterServer(ServerConfig.model_validate_json(sys.argv[1]), dim=int(sys.argv[2])).serve_forever()
"""


class Trainer:
    """One node that moves random rows; `took` has each request's begin and length in seconds."""

    def __init__(self, client: ParameterClient, dim: int) -> None:
        self.client = client
        self.took: list[tuple[float, float]] = []
        self._dim = dim
        self._sequence = 0
        self._clock = client.hello().clock

    def fill(self, words: int, candidates: int) -> None:
        """Words with a row, words without one, all of them counted by source."""
        for first in range(0, words, BATCH):
            batch = names(first, min(BATCH, words - first))
            ids = self.client.admit(batch, np.full(len(batch), 5))
            for source in SOURCES:
                self._push((), BlockCounts(*_counted(source, ids, ())))
        for first in range(words, words + candidates, BATCH):
            fresh = names(first, min(BATCH, words + candidates - first))
            self._push((), BlockCounts(*_counted(SOURCES[0], np.full(len(fresh), -1), fresh)))

    def train(self, words: int, stop: threading.Event) -> None:
        """Blocks without a pause."""
        rng = np.random.default_rng(1)
        while not stop.is_set():
            ids = np.sort(rng.choice(words, BLOCK, replace=False))
            began = time.perf_counter()
            self._clock = self.client.pull(
                PullRequest({Table.IN: ids, Table.OUT: ids}, clock=self._clock)
            ).clock
            self.took.append((began, time.perf_counter() - began))
            values = np.full((BLOCK, self._dim), 1e-4, dtype=np.float32)
            began = time.perf_counter()
            self._push(
                tuple(RowDelta(table, ids, values) for table in (Table.IN, Table.OUT)),
                BlockCounts(*_counted(SOURCES[0], ids, ())),
            )
            self.took.append((began, time.perf_counter() - began))

    def _push(self, deltas: tuple[RowDelta, ...], counts: BlockCounts) -> None:
        self._sequence += 1
        tokens = int(counts.counts.sum())
        progress = (SourceProgress(counts.groups[0].source, 1, tokens, 0.0, 0),)
        push = Push(
            self.client.node, self._sequence, self._clock, deltas, counts, progress, tokens=tokens
        )
        self._clock = self.client.push(push).clock


def _counted(source: str, ids: IntArray, words: Sequence[str]) -> tuple[Any, ...]:
    ones = np.ones(len(ids), dtype=np.int64)
    return ((CountGroup(source, 0, len(ids)),), ids, list(words), ones, ones)


@contextmanager
def serving(folder: Path, dim: int) -> Iterator[str]:
    """A server in a process of its own; its address."""
    config = ServerConfig(
        port=free_port(),
        state_dir=folder,
        checkpoint_every_s=86_400.0,
        min_count=5,
        half_life_tokens=None,
    )
    process = subprocess.Popen([sys.executable, "-c", SERVE, config.model_dump_json(), str(dim)])
    try:
        yield f"grpc://127.0.0.1:{config.port}"
    finally:
        process.terminate()
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()


def measure(words: int, dim: int, candidates: int, checkpoints: int) -> dict[str, Any]:
    """Requests with and without a checkpoint under way, and what the server says."""
    config = ExchangeConfig().model_copy(
        update={"max_unconfirmed": 100_000, "max_unconfirmed_bytes": 1 << 40}
    )
    locks: list[float] = []
    spans: list[tuple[float, float]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), dim) as location,
        ParameterClient(location, node="trainer", config=config) as client,
        ParameterClient(location, node="operator", config=config) as operator,
    ):
        trainer, stop = Trainer(client, dim), threading.Event()
        trainer.fill(words, candidates)
        thread = threading.Thread(target=trainer.train, args=(words, stop), daemon=True)
        thread.start()
        for _ in range(checkpoints):
            time.sleep(4.0)
            began = time.perf_counter()
            operator.checkpoint()
            spans.append((began, time.perf_counter()))
            locks.append(operator.status()["pause_ms"]["checkpoint"])
        time.sleep(2.0)
        stop.set()
        thread.join(60)
    during = [ms for at, ms in _milliseconds(trainer.took) if any(_in(at, span) for span in spans)]
    quiet = [ms for at, ms in _milliseconds(trainer.took) if not any(_in(at, s) for s in spans)]
    return {
        "lock_ms": locks,
        "checkpoint_s": [end - began for began, end in spans],
        "requests_during": _spread(during),
        "requests_otherwise": _spread(quiet),
    }


def _milliseconds(took: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(began, 1000 * seconds) for began, seconds in took]


def _in(at: float, span: tuple[float, float]) -> bool:
    return span[0] - 0.5 <= at <= span[1]


def _spread(ms: Sequence[float]) -> dict[str, float]:
    if not ms:
        return {}
    return {
        "n": len(ms),
        "median_ms": float(np.median(ms)),
        "p99_ms": float(np.quantile(ms, 0.99)),
        "longest_ms": max(ms),
    }


def bench_checkpoint(
    words: int, dim: int, candidates: int, checkpoints: int, *, results: Path = RESULTS
) -> dict[str, Any]:
    """Measure and write a dated result."""
    report = {
        **facts("checkpoint", ("numpy", "torch", "pyarrow")),
        "words": words,
        "dim": dim,
        "words_without_a_row": candidates,
        "rows_a_block": 2 * BLOCK,
        **measure(words, dim, candidates, checkpoints),
    }
    keep(report, results=results)
    print(json.dumps(report, indent=1))
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--words", type=int, default=500_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--checkpoints", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    bench_checkpoint(
        given.words, given.dim, given.candidates, given.checkpoints, results=given.results
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
