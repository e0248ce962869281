"""The counting pass: every word that will have a row gets it before the first node learns.

word2vec and gensim count first, too. Words are counted by Arrow's kernels, and admitted most
frequent first, so that a word's id is its rank.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.random
import pyarrow as pa
import pyarrow.compute as pc

from embedding.kernel.records import IntArray, TokenBlock
from embedding.text.config import TextConfig
from embedding.text.plain import fitting, split_lines
from embedding.training.checks import check_memory
from embedding.training.request import TrainRequest
from embedding.worker.corpus.corpus import stretches
from embedding.worker.corpus.reading import blocks, text_process
from embedding.worker.spec import CorpusShare, NodeSpec

if TYPE_CHECKING:
    from embedding.server.service import ParameterServer


T = TypeVar("T")

BATCH = 1 << 22
"""Characters that are counted together."""
MOST_WORDS = 4_000_000
"""Distinct words remembered; beyond it the rarest are forgotten, as word2vec does."""


@dataclass(frozen=True)
class CountedWords:
    """Distinct words, most frequent first (of equal ones by code point); counts int64 [n]."""

    words: pa.StringArray
    counts: IntArray

    @property
    def tokens(self) -> int:
        return int(self.counts.sum())

    def at_least(self, min_count: int) -> CountedWords:
        n = int(np.searchsorted(-self.counts, -min_count, side="right"))
        return CountedWords(self.words[:n], self.counts[:n])


def count_lines(
    texts: Iterable[str], config: TextConfig, *, threads: int = 2, most: int = MOST_WORDS
) -> CountedWords:
    """Words of plain text, each text some whole lines: the same words as `code_lines` gives.

    Memory is bounded by `most` distinct words and `threads` + 1 batches.
    """
    total = _Total(most)
    waiting: deque[Future[pa.Table]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="count") as pool:
        for text in _batches(texts):
            waiting.append(pool.submit(_count, text, config))
            if len(waiting) > threads:
                total.add(waiting.popleft().result())
        while waiting:
            total.add(waiting.popleft().result())
    return total.counted()


def count_blocks(blocks: Iterable[TokenBlock], *, most: int = MOST_WORDS) -> CountedWords:
    """Words of blocks that any tokenizer made."""
    total = _Total(most)
    for block in blocks:
        counts = np.bincount(block.codes, minlength=len(block.words)).astype(np.int64)
        total.add(_table(pa.array(block.words, pa.string()), pa.array(counts)))
    return total.counted()


class _Total:
    """Sums tables of (word, count), bounded."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[pa.Table] = []
        self._rows = 0
        self._held = 0

    def add(self, part: pa.Table) -> None:
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > max(1_000_000, 2 * self._held):
            self._sum()

    def counted(self) -> CountedWords:
        self._sum()
        if not self._parts:
            return CountedWords(pa.array([], pa.string()), np.empty(0, np.int64))
        table = _sorted(self._parts[0])
        counts: IntArray = table["count"].to_numpy()
        return CountedWords(table["word"].combine_chunks(), counts)

    def _sum(self) -> None:
        if not self._parts:
            return
        summed = pa.concat_tables(self._parts).group_by("word").aggregate([("count", "sum")])
        summed = _table(summed["word"], summed["count_sum"])
        if summed.num_rows > self._most:
            summed = _sorted(summed)[: self._most * 9 // 10]
        self._parts, self._held = [summed], summed.num_rows
        self._rows = self._held


def _count(text: str, config: TextConfig) -> pa.Table:
    lines = pc.split_pattern(pa.array([text], pa.string()), "\n").values
    counted = split_lines(lines, config).values.value_counts()
    words = counted.field("values")
    return _table(words, counted.field("counts")).filter(pa.array(fitting(words, config)))


def _table(words: pa.Array, counts: pa.Array) -> pa.Table:
    return pa.table({"word": words, "count": counts})


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([("count", "descending"), ("word", "ascending")])


def _batches(texts: Iterable[str]) -> Iterator[str]:
    """Texts put together, so that one batch is worth a call."""
    waiting: list[str] = []
    size = 0
    for text in texts:
        waiting.append(text if text.endswith("\n") else text + "\n")
        size += len(text)
        if size >= BATCH:
            yield "".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "".join(waiting)


class CountingThread:
    """A counting pass on a thread of its own, while the rest is imported and started."""

    def __init__(self, request: TrainRequest, pool: ThreadPoolExecutor) -> None:
        self._request = request
        self._stop = threading.Event()
        self._counted = pool.submit(self._count)

    def stop(self) -> None:
        self._stop.set()

    def wait(self) -> CountedWords:
        """Wait; the words that get rows, maybe none. Raises ConfigError where memory cannot hold
        their rows."""
        request = self._request
        counted = self._counted.result().at_least(request.server.min_count)
        most = request.server.max_words
        counted = CountedWords(counted.words[:most], counted.counts[:most])
        check_memory(request, len(counted.counts))
        return counted

    def admit(self, server: ParameterServer) -> int:
        """Wait, give the words their rows, and return how many tokens an epoch will learn."""
        counted = self.wait()
        words = counted.words.to_pylist()
        server.state.words.admit(words, counted.counts)
        with server.state.lock:
            # Closed: a rarer word would reach min_count in a later epoch, or evict another; and
            # noise and subsampling follow the whole corpus from the first block on.
            server.state.vocabulary.close(words, counted.counts)
        return counted.tokens

    def _count(self) -> CountedWords:
        request = self._request
        share = CorpusShare(path=str(request.corpus), timezone=request.server.timezone)
        if request.quickly_counted:
            texts = (stretch.text for stretch in stretches(share))
            return count_lines(self._until_stopped(texts), request.text)
        spec = NodeSpec(name="counting", server="", corpus=share, text=request.text)
        with text_process(spec) as text:
            return count_blocks(self._until_stopped(blocks(spec, share, text=text)))

    def _until_stopped(self, items: Iterator[T]) -> Iterator[T]:
        for item in items:
            if self._stop.is_set():
                return
            yield item


@contextmanager
def counting(
    request: TrainRequest, counted: int | None = None
) -> Iterator[CountingThread | int | None]:
    """A counting pass under way, None where the vocabulary grows.

    counted  tokens of an epoch, when an interrupted training has counted them
    """
    if not request.counts_first or counted is not None:
        yield counted
        return
    with ThreadPoolExecutor(1, thread_name_prefix="counting") as pool:
        pass_ = CountingThread(request, pool)
        try:
            yield pass_
        finally:
            pass_.stop()
