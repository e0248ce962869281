"""What a word costs: bytes of a row on server and node, time of a look-up, memory of a long stream.

    python -m benchmarks vocabulary

Memory is what Python and numpy allocate (tracemalloc) between two moments; tables are counted by
their size. The stream has ten times more distinct words than the bounds allow in all.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import RESULTS
from embedding.exchange.contributors import Contributors
from embedding.exchange.protocol import VocabularyDelta
from embedding.kernel.records import IntArray
from embedding.server.words.vocabulary import Vocabulary
from embedding.worker.words.lexicon import NodeLexicon
from yeoron_bench.results import facts, keep_and_print

LOOKED_UP = 50_000
SYLLABLES = "가나다라마바사아자차카타파하고노도로모보소오조초코토포호기니디리미비시이지치키티피히"


def names(first: int, n: int) -> list[str]:
    """Distinct words of about four syllables."""
    base = len(SYLLABLES)
    names = []
    for number in range(first, first + n):
        letters, rest = [], number + base**3
        while rest:
            rest, at = divmod(rest, base)
            letters.append(SYLLABLES[at])
        names.append("".join(letters))
    return names


def allocated(make: Callable[[], object]) -> tuple[int, object]:
    """Bytes that what `make` returns holds on to."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    made = make()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before, made


def vocabulary(words: int, candidates: int = 0) -> Vocabulary:
    return Vocabulary(
        min_count=5,
        max_words=words,
        max_candidates=max(candidates, 1),
        half_life_tokens=None,
    )


def admitted(words: int) -> Vocabulary:
    made = vocabulary(words)
    made.admit(names(0, words))
    return made


def counted(words: int) -> Vocabulary:
    made = vocabulary(1, words)
    ones = np.ones(words, dtype=np.int64)
    made.count(
        ones[:0], ones[:0], np.empty(0), names(0, words), ones, ones.astype(np.float64), words
    )
    return made


class VocabularyServer:
    """Answers with a vocabulary whose words are texts of their own, as those of a message are."""

    def __init__(self, words: int) -> None:
        self._words = words

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        raise NotImplementedError

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        del since
        ids = np.arange(self._words)
        ones = np.ones(self._words, dtype=np.int64)
        return VocabularyDelta(
            1, names(0, self._words), ids, ones, alive=ids, alive_counts=ones.astype(np.float64)
        )


def mirrored(words: int) -> NodeLexicon:
    made = NodeLexicon()
    made.refresh(VocabularyServer(words))
    return made


def look_ups(words: int) -> dict[str, float]:
    """Milliseconds of processor time of 50,000 ids → slots: after no eviction and after many."""
    figures = {}
    for name, rounds in (("fresh", 0), ("after evictions", 40)):
        made = admitted(words)
        made.version += 1000
        for _ in range(rounds):
            made.admit(names(made.next_id, words // 20))
            made.version += 1000
        alive = made.alive()
        random = np.random.default_rng(1)
        asked = random.choice(alive, min(LOOKED_UP, len(alive)), replace=False)
        for order, ids in (("in order", np.sort(asked)), ("in any order", asked)):
            times = []
            for _ in range(20):
                started = time.thread_time()
                made.slots(ids, "bench")
                times.append(time.thread_time() - started)
            figures[f"{name}, {order}"] = 1000 * float(np.median(times))
    return figures


def stream(words: int, candidates: int, ticks: int = 50) -> list[dict[str, int]]:
    """Memory as ten times more words come by than the bounds hold."""
    each = 10 * (words + candidates) // ticks
    tracemalloc.start()
    made = vocabulary(words, candidates)
    sizes = []
    for tick in range(ticks):
        read = names(tick * each, each)
        counts = np.random.default_rng(tick).geometric(0.3, each)
        fresh = made.plan(read, counts)
        for at in range(0, len(fresh), max(1, words // 20)):
            made.admit(fresh[at : at + words // 20])
        none = np.empty(0, dtype=np.int64)
        made.count(
            none, none, np.empty(0), read, counts, counts.astype(np.float64), int(counts.sum())
        )
        if (tick + 1) % (ticks // 10) == 0:
            gc.collect()
            sizes.append(
                {
                    "words_read": (tick + 1) * each,
                    "ids_given": made.next_id,
                    "words": len(made),
                    "candidates": len(made.candidates),
                    "remembered_evictions": len(made.evictions),
                    "bytes": tracemalloc.get_traced_memory()[0],
                }
            )
    tracemalloc.stop()
    return sizes


def bench_vocabulary(
    words: int = 200_000, dim: int = 100, *, results: Path = RESULTS
) -> dict[str, Any]:
    """Measure, print a table, write a dated JSON and Markdown file; returns what was written."""
    measured = {
        name: allocated(partial(make, words))[0] / words
        for name, make in (("server", admitted), ("candidate", counted), ("node", mirrored))
    }
    tables = 2 * 4 * dim + 2 * 4
    report = {
        **facts("vocabulary", ("numpy", "torch")),
        "words": words,
        "dim": dim,
        "bytes": {
            "server: two float32 rows and their accumulators": tables,
            "server: word, columns, map of ids": round(measured["server"]),
            "server: a word without a row": round(measured["candidate"]),
            "node: word, id, count": round(measured["node"]),
        },
        "look_up_ms": look_ups(words),
        "stream": stream(words // 10, words // 5),
    }
    keep_and_print(report, results=results)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--words", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    bench_vocabulary(given.words, given.dim, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
