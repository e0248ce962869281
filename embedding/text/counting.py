"""Counting the words of a whole corpus before it is learnt, by Arrow's kernels.

word2vec and gensim count first, so that every word that will have a row has one from the start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.kernel.records import IntArray, TokenBlock
from embedding.text.config import TextConfig
from embedding.text.plain import fitting, split_lines

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
    found = split_lines(lines, config).values.value_counts()
    words = found.field("values")
    return _table(words, found.field("counts")).filter(pa.array(fitting(words, config)))


def _table(words: pa.Array, counts: pa.Array) -> pa.Table:
    return pa.table({"word": words, "count": counts})


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([("count", "descending"), ("word", "ascending")])


def _batches(texts: Iterable[str]) -> Iterator[str]:
    """Texts put together, so that one batch is worth a call."""
    held: list[str] = []
    size = 0
    for text in texts:
        held.append(text if text.endswith("\n") else text + "\n")
        size += len(text)
        if size >= BATCH:
            yield "".join(held)
            held, size = [], 0
    if held:
        yield "".join(held)
