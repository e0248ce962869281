"""Corpora of the benchmarks, read and put into rows before a clock runs."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import CodeArray, IntArray

MIN_COUNT = 5


@dataclass(frozen=True)
class Corpus:
    """A corpus in rows: words by falling count, tokens int32 (-1: too rare), sentence offsets."""

    words: list[str]
    counts: IntArray
    tokens: CodeArray
    sentences: CodeArray

    @property
    def known(self) -> int:
        return int((self.tokens >= 0).sum())


def sentences(path: Path, words: int) -> Iterator[list[str]]:
    """The first sentences of `path` until `words` words are read."""
    for line in lines_of(path, "one sentence a line"):
        if words <= 0:
            return
        sentence = line.split()
        words -= len(sentence)
        if sentence:
            yield sentence


def lines_of(path: Path, expected: str) -> Iterator[str]:
    """Lines of a text, plain, .xz or .gz; InputError, with what is `expected`, where it is none."""
    openers: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
    try:
        with openers.get(path.suffix, open)(path, "rt", encoding="utf-8-sig") as lines:
            yield from lines
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; {expected} is expected.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text, {expected}: {error}.") from error
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path}: it cannot be read: {error}.") from error


def encode(lines: Sequence[Sequence[str]], least: int = MIN_COUNT) -> Corpus:
    """In rows: words that occur at least `least` times."""
    counts = Counter(word for line in lines for word in line)
    frequent = sorted(
        (word for word in counts if counts[word] >= least),
        key=lambda word: (-counts[word], word),
    )
    if not frequent:
        raise InputError(f"no word occurs {least} times: a longer corpus is needed.")
    rows = {word: row for row, word in enumerate(frequent)}
    tokens = np.fromiter((rows.get(word, -1) for line in lines for word in line), np.int32)
    ends = np.cumsum([0, *(len(line) for line in lines)]).astype(np.int32)
    return Corpus(frequent, np.array([counts[word] for word in frequent]), tokens, ends)


def cut(ends: CodeArray, size: int) -> list[tuple[int, int]]:
    """Runs of sentences of about `size` tokens."""
    runs, start = [], 0
    for end in range(1, len(ends)):
        if ends[end] - ends[start] >= size or end == len(ends) - 1:
            runs.append((start, end))
            start = end
    return runs
