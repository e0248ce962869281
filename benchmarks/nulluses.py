"""Words called where nothing changed: documents are assigned to windows and sources at random.

    python -m benchmarks nulluses petitions.jsonl --tokenizer kiwi --permutations 40 --campaign 200
    python -m benchmarks nulluses petitions.jsonl --tokenizer kiwi --sentences --unit-lines 100

Each permutation has --windows windows of equally many documents of two sources. A node's reader
closes each window but the first (`worker/usage/usage.py`), the server's sums take what it sends,
and the report's test judges it (`trends/permutation.py`), with late calls of words that were just
short in the window before (`trends/moved.py`). Nothing is trained: the test of times
does not use the model's vectors. Between sources it does; random ones stand in for them. With
--campaign one document of each window is pasted into it so many times. With --sentences each
sentence is a line of its own, and --unit-lines lines are one unit of the test, as in
`yeoron train --unit-lines`; documents stay whole and beside each other. Every call is false: of
windows in which nothing changed, at most `trends.false_discovery` should have any.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.kept import RESULTS
from embedding.exchange.protocol import Push
from embedding.kernel.errors import YeoronError
from embedding.kernel.records import Calendar, FloatArray, IntArray, TokenBlock, WindowUnit
from embedding.server.parts import PushArrival
from embedding.server.snapshotting.usage import usage_of
from embedding.server.words.usage import UsageSums, added_up
from embedding.trends.config import TrendsConfig
from embedding.trends.moved import SHORT, judge_late
from embedding.trends.online import OnlineTests
from embedding.trends.permutation import MIN_DOCUMENTS, between_sources, between_times
from embedding.trends.replicas import UsedWords
from embedding.trends.significance import benjamini_hochberg, wilson
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.corpus import document_key, line_units
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.usage import UsageReader
from yeoron_bench.drift import documents
from yeoron_bench.planting import PlantedDocument
from yeoron_bench.results import facts, keep

PACKAGES = ("yeoron", "numpy", "scipy", "numba", "kiwipiepy")
CONFIG = TrendsConfig()
DIM = 100
DAY = 86_400
SOURCES = ("a", "b")
ROW = 5
"""Mentions that give a word its row."""


class Corpus:
    """Documents, and the words that have a row."""

    def __init__(self, documents: Sequence[PlantedDocument]) -> None:
        self.documents = documents
        counts: dict[str, int] = {}
        for document in documents:
            for sentence in document:
                for word in sentence:
                    counts[word] = counts.get(word, 0) + 1
        words = [word for word, n in counts.items() if n >= ROW]
        self.rows = {word: at for at, word in enumerate(words)}
        self.ids = np.arange(len(words), dtype=np.int64)
        self.counts = np.array([counts[word] for word in words], dtype=np.float64)
        drawn = np.random.default_rng(0).standard_normal((len(words), DIM))
        self.vectors: FloatArray = drawn.astype(np.float32)

    @property
    def lexicon(self) -> Any:
        """What a node's reader asks of its words."""
        words = list(self.rows)
        return SimpleNamespace(
            ids=self.ids,
            counts=self.counts,
            places=lambda ids: ids,
            rows=lambda waiting: np.full(len(waiting), -1),
            names=lambda ids: [words[row] for row in ids.tolist()],
        )


def calls(
    corpus: Corpus, seed: int, windows: int, campaign: int, lines: int = 0
) -> Iterator[dict[str, Any]]:
    """For each window but the first: words compared and called, and the least q, by both tests.

    lines  sentences in a row that are one unit of the test; 0: a document is a document
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(corpus.documents))
    config = NodeConfig()
    past = PastTexts(Calendar(WindowUnit.DAY), config.past_tokens, config.past_windows)
    reader = UsageReader(5, corpus.vectors.shape[1], past)
    short: IntArray = np.empty(0, np.int64)
    for window, part in enumerate(np.array_split(order, windows)):
        pasted = np.concatenate([part, np.repeat(part[:1], campaign)])
        source = random.integers(len(SOURCES), size=len(pasted))
        for at, name in enumerate(SOURCES):
            texts = [corpus.documents[i] for i in pasted[source == at].tolist()]
            if lines:
                texts = [[sentence] for text in texts for sentence in text]
            keys = [document_key(f"{window}{name}", i) for i in range(len(texts))]
            block = TokenBlock.build(name, texts, published=[window * DAY] * len(keys), keys=keys)
            if lines:
                first = (window * len(SOURCES) + at) << 32
                numbers = [document_key(name, first + i) for i in range(len(texts))]
                block = replace(block, contents=line_units(numbers, lines))
            table = np.array([corpus.rows.get(word, -1) for word in block.words], dtype=np.int64)
            reader.keep([block], [table])
        if window:
            figures, short = judged(corpus, reader, window * DAY, short)
            yield figures


def judged(
    corpus: Corpus, reader: UsageReader, window: int, short: IntArray
) -> tuple[dict[str, Any], IntArray]:
    """What the report would call of a window, and the rows of words that are just short in it.

    short  int64 [k], rows of those of the window before
    """
    sums = UsageSums(DIM, wanted=True, limit=len(corpus.ids) * len(SOURCES))
    sent = reader.close(window, corpus.lexicon, lambda ids: corpus.vectors[ids]).sums
    sums.learnt(PushArrival.prepare(Push("n0", 1, 0, usage=sent), 0), 0.0, ())
    usage = usage_of(added_up(sums.held([window])), corpus.ids)
    assert usage is not None
    now, *earlier = usage.reread
    rows = often([now], CONFIG.min_count) & often(earlier, CONFIG.min_count)
    at: IntArray = np.array(sorted(rows), dtype=np.int64)
    before, after = [UsedWords(words, at) for words in earlier], UsedWords(now, at)
    moved = between_times(before, after)
    q, q_late = benjamini_hochberg(moved.p), np.ones(len(at))
    late = judge_late(before, after, np.flatnonzero(np.isin(at, short)))
    if late is not None:
        q, q_late = np.split(benjamini_hochberg(np.concatenate([moved.p, late[0]])), 2)
    q_moved = np.minimum(q, q_late)
    both: set[int] = set(corpus.ids.tolist())
    for name in SOURCES:
        own = usage.by_source[name]
        both &= set(usage.rows[own][usage.mentions[own] >= MIN_DOCUMENTS].tolist())
    shared: IntArray = np.array(sorted(both), dtype=np.int64)
    apart = between_sources(UsedWords(usage, shared), SOURCES[0], SOURCES[1:])
    tests = {"moved": q_moved, "contrast": benjamini_hochberg(apart.p)}
    figures: dict[str, Any] = {}
    for test, q in tests.items():
        figures[test] = int((q <= CONFIG.false_discovery).sum())
        figures[f"{test} of"] = len(q)
        figures[f"{test} q"] = float(q.min(initial=1.0))
    figures["late"] = int((q_late <= CONFIG.false_discovery).sum())
    return figures, at[(moved.p <= SHORT) & (q_moved > CONFIG.false_discovery)]


def often(windows: Sequence[Any], least: int) -> set[int]:
    """Rows of words that occur in so many documents of these windows."""
    rows = np.concatenate([words.rows for words in windows])
    seen = np.bincount(rows, np.concatenate([words.mentions for words in windows]))
    return set(np.flatnonzero(seen >= least).tolist())


def over_the_stream(windows: Sequence[dict[str, Any]], test: str) -> int:
    """Windows with a call where all are tested as one sequence (trends.control = "stream")."""
    control = OnlineTests()
    for window in windows:
        control = control.next(CONFIG.false_discovery)
        control = control.decided(window[f"{test} q"] <= control.level)
    return len(control.called)


def summary(windows: Sequence[dict[str, Any]], test: str) -> dict[str, Any]:
    """Windows with a call, its interval of 95 % (Wilson 1927), and words called."""
    n, k = len(windows), sum(window[test] > 0 for window in windows)
    return {
        "windows": n,
        "with a call": k,
        "share": round(k / n, 4),
        "interval": [round(end, 4) for end in wilson(k / n, n)],
        "with a call, over the stream": over_the_stream(windows, test),
        "words called": sum(window[test] for window in windows),
        "words compared": sum(window[f"{test} of"] for window in windows),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="dated JSONL, plain or .xz")
    parser.add_argument("--tokenizer", default="whitespace")
    parser.add_argument("--documents", type=int, default=None)
    parser.add_argument("--windows", type=int, default=6)
    parser.add_argument("--permutations", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first permutation")
    parser.add_argument("--sentences", action="store_true", help="a line is a sentence")
    parser.add_argument("--unit-lines", type=int, default=1, help="with --sentences")
    parser.add_argument("--campaign", type=int, default=0, help="copies of one document a window")
    given = parser.parse_args(arguments)
    try:
        corpus = Corpus(documents(given.corpus, given.tokenizer, given.documents))
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    windows: list[dict[str, Any]] = []
    began = time.monotonic()
    for seed in range(given.first, given.first + given.permutations):
        lines = given.unit_lines if given.sentences else 0
        windows += calls(corpus, seed, given.windows, given.campaign, lines)
        print(
            seed,
            [(window["moved"], window["contrast"]) for window in windows[1 - given.windows :]],
            flush=True,
        )
    figures = {test: summary(windows, test) for test in ("moved", "contrast")}
    figures["moved"]["words called late"] = sum(window["late"] for window in windows)
    print(figures)
    settings = {k: v for k, v in vars(given).items() if k != "corpus"}
    record = facts("nulluses", PACKAGES) | {
        "corpus": given.corpus.name,
        "settings": settings,
        "seconds": round(time.monotonic() - began, 1),
        **figures,
    }
    print(f"Written to {keep(record, results=RESULTS)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
