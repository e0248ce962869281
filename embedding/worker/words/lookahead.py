"""How often words without a row will come again: a corpus is read a little ahead of what is learnt.

A word gets its row by its `min_count`-th mention, so that its first ones would be passed by. Where
the next ticks are known, a word that will be frequent enough has its row from its first mention on,
as with those who count a period before they learn it. What is held here is acknowledged to nobody:
a node that is started again reads it again.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import Calendar, TokenBlock

_BlocksAhead = list[TokenBlock]
_Known = Callable[[Sequence[str]], Sequence[bool]]
"""Which of some words have a row, bool [n]."""


@dataclass(frozen=True)
class _Waiting:
    """A tick that waits to be learnt: its window, and its words that had no row."""

    blocks: _BlocksAhead
    window: int
    unknown: dict[str, int]
    tokens: int


class LookAhead:
    """Holds the next ticks of a node, at least `tokens` tokens or all there are of the window.

    stop   once it is set, what is held is given to nobody
    """

    def __init__(self, tokens: int, calendar: Calendar, stop: threading.Event) -> None:
        self._tokens = tokens
        self._calendar = calendar
        self._stop = stop
        self._waiting: deque[_Waiting] = deque()
        self._coming: Counter[str] = Counter()

    def coming(self, word: str) -> int:
        """Mentions of a word without a row in ticks of this window behind the last one given."""
        return self._coming[word]

    def ticks(
        self, ticks: Iterator[_BlocksAhead | None], known: _Known
    ) -> Iterator[_BlocksAhead | None]:
        """The same ticks in the same order, each when those behind it have been looked at."""
        for blocks in ticks:
            if not blocks:  # nothing came in time
                yield from self._rest()
                yield blocks
                continue
            self._waiting.append(self._look(blocks, known))
            while self._looked():
                yield self._next()
        yield from self._rest()

    def _rest(self) -> Iterator[_BlocksAhead]:
        while self._waiting and not self._stop.is_set():
            yield self._next()

    def _looked(self) -> bool:
        """Whether enough is known of what comes behind the first tick that is held."""
        if not self._waiting or self._stop.is_set():
            return False
        first, last = self._waiting[0], self._waiting[-1]
        behind = sum(tick.tokens for tick in self._waiting) - first.tokens
        return last.window != first.window or behind >= self._tokens

    def _next(self) -> _BlocksAhead:
        given = self._waiting.popleft()
        self._coming = Counter()
        for tick in self._waiting:
            if tick.window == given.window:
                self._coming.update(tick.unknown)
        return given.blocks

    def _look(self, blocks: _BlocksAhead, known: _Known) -> _Waiting:
        unknown: Counter[str] = Counter()
        for block in blocks:
            counts = np.bincount(block.codes, minlength=len(block.words)).tolist()
            for word, count, has_row in zip(block.words, counts, known(block.words), strict=True):
                if not has_row:
                    unknown[word] += count
        tokens = sum(block.n_tokens for block in blocks)
        # No tick of a dated corpus holds documents of two windows.
        first = next((block.published[0] for block in blocks if len(block.published)), 0.0)
        return _Waiting(blocks, self._calendar.start(float(first)), dict(unknown), tokens)
