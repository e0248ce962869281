"""What a node read in the windows before, read again by the tables that a new one begins with.

What the contexts of a word say lies where the tables have them at that time, and a model that goes
on learning moves them all: sums of two windows differ although the texts do not. So a window has a
compass (`compass.py`). The texts of the windows before are read again by it, and those of the
window as they come; then both lie in one space (docs/trends.md).

Each tick of a window pulls some rows of the compass and reads some of the past, until all is read:
how much follows from the tokens of the tick alone, so that the same stream gives the same sums. The
sums of a part stay here until the whole part is read, and leave with the push of that tick. What is
not read when the next window begins is left: of a part all texts are compared or none.

Where a server refuses rows of the compass it lost words that it had given. Then the compass is no
table that ever was, and no other one is that by which the window's first texts were read: what is
yet to come of the window is not summed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.compression.halves import narrow
from embedding.exchange.payload import Reread, said
from embedding.models.base import LocalBlock
from embedding.records import CodeArray, FloatArray, IntArray, Table, TokenBlock
from embedding.worker.compass import PULLED, Compass, Pull
from embedding.worker.past import PastTexts, Sentences, Stretch
from embedding.worker.secondorder import SecondOrder
from embedding.worker.slopes import MOST, add_usage
from embedding.worker.smoothing import RowMeans
from embedding.worker.ticks import Begun

SHARE = 8
"""Tokens that a tick reads again, at most, for each fresh one."""
LEAST = 32_768
"""Tokens that any tick may read again: some 16 ms on one core."""
TWICE = 2
"""Mentions that a word needs in a part."""
_NONE = -1
Values = TypeVar("Values", IntArray, FloatArray)


class PartSums:
    """One part of a source's past, and the sums of what was read of it so far."""

    def __init__(self, compass: Compass, source: str, part: int, texts: Sequence[Stretch]) -> None:
        self.compass, self.source, self.part = compass, source, part
        self.texts = Sentences(texts)
        # One more than the row of each word: what does not occur takes no memory.
        self._rows = np.zeros(len(compass.ids), dtype=np.int32)
        self._words: IntArray = np.empty(0, dtype=np.int64)
        self._times: IntArray = np.empty(0, dtype=np.int64)
        self._pairs: FloatArray = np.empty(0, dtype=np.float32)
        self._slopes: FloatArray = np.empty((0, said(compass.contexts.shape[1])), np.float32)

    def read(self, most: int, context: int) -> int:
        """Go on with about `most` tokens and say how many; context: words on each side."""
        ids, sentences = self.texts.take(most)
        tokens = self.compass.places(ids)
        owners = self._owners(tokens)
        add_usage(
            owners,
            tokens.astype(np.int32),
            sentences,
            self.compass.keep,
            self.compass.vectors,
            self.compass.contexts,
            self.compass.around,
            context,
            self._slopes,
            self._pairs,
        )
        return len(ids)

    def _owners(self, tokens: IntArray) -> CodeArray:
        """int32 [n], the row of the sums for each token, -1 for none; a new word is given one."""
        there = tokens >= 0
        known = tokens[there]
        new = np.unique(known[self._rows[known] == 0])
        before, n = len(self._words), len(self._words) + len(new)
        self._rows[new] = np.arange(before + 1, n + 1, dtype=np.int32)
        self._words = np.concatenate([self._words, new])
        owners = np.full(len(tokens), _NONE, dtype=np.int32)
        owners[there] = self._rows[known] - 1
        self._times = _longer(self._times, n) + np.bincount(owners[there], minlength=n)
        if n > len(self._pairs):
            size = max(n, 2 * before)
            self._pairs, self._slopes = _longer(self._pairs, size), _longer(self._slopes, size)
        return owners

    def told(self, window: int) -> Reread | None:
        """As it travels; None when no word is there often enough."""
        pairs = self._pairs[: len(self._words)]
        held = np.flatnonzero((self._times >= TWICE) & (pairs > 0))
        if not len(held):
            return None
        held = held[np.argsort(self._words[held])]
        halves = narrow(np.clip(self._slopes[held], -MOST, MOST))
        ids = self.compass.ids[self._words[held]]
        return Reread(window, self.source, self.part, ids, halves, pairs[held])


class Rereading:
    """A node's compass, and what it has to read again by it."""

    def __init__(self, context: int, past: PastTexts) -> None:
        """context: words on each side; `lost`: no text of this window is summed any more."""
        self.context = context
        self.past = past
        self.compass: Compass | None = None
        self.lost = False
        self._means: RowMeans | None = None
        self._around: SecondOrder | None = None
        self._window = 0
        self._due: deque[PartSums] = deque()

    @property
    def left(self) -> int:
        """Tokens of the windows before that this window has yet to read again."""
        return sum(part.texts.tokens for part in tuple(self._due))

    def begin(self, begun: Begun, dim: int) -> None:
        """A window begins, with a compass if there is anything to compare it with."""
        texts = self.past.before(begun.window) if len(begun.ids) else {}
        self._window, self.compass, self.lost = begun.window, None, False
        self._due = deque()
        means = self._means = self._means or RowMeans(dim)
        means.begin(begun.ids)
        self._around = self._around or SecondOrder(dim, self.context)
        around = self._around.begin(begun.ids)
        if texts:
            self.compass = Compass(begun.ids, begun.keep, around)
            order = sorted(texts, key=lambda key: (key[1], key[0]))
            self._due.extend(PartSums(self.compass, *key, texts[key]) for key in order)

    def see(self, table: Table, ids: IntArray, rows: FloatArray) -> FloatArray:
        """The means of rows [n, dim] that a tick is about to train, with these, float32."""
        if self._means is None:
            return rows
        if self.compass is None:  # later words would not lie as the compass has them
            self._means.meet(ids)
        at = self._means.places(ids)
        means = self._means.smooth(table, at, rows)
        if self.compass is not None:
            self.compass.see(table, at, means)
        return means

    def keep(self, blocks: Sequence[TokenBlock], fresh: LocalBlock, words: IntArray) -> None:
        """Remember the text of a tick for the windows that follow.

        fresh  the tokens of `blocks` alone, rows of `words`; words: int64 [n], their row ids
        """
        if not blocks:
            return
        lengths = [len(one.codes) for one in blocks]
        ids = np.full(len(fresh.tokens), -1, dtype=np.int64)
        ids[fresh.tokens >= 0] = words[fresh.tokens[fresh.tokens >= 0]]
        self.past.add(blocks, np.split(ids, np.cumsum(lengths)[:-1]))
        if self._around is not None:
            self._around.add(blocks, fresh, words)

    def read(self, fresh: int, pull: Pull) -> tuple[Reread, ...]:
        """Go on in a tick of `fresh` tokens; the parts that are finished with it."""
        if self.compass is None or self._means is None or not self._due:
            return ()
        try:
            self.compass.ask(pull, max(PULLED, fresh), self._means)
        except RefusedError:  # the server lost words that it had given: this window goes without
            self._due.clear()
            self.compass, self.lost = None, True
            return ()
        found = []
        left = max(LEAST, SHARE * fresh) if self.compass.whole else 0
        while self._due and left > 0:
            part = self._due[0]
            left -= part.read(left, self.context)
            if not part.texts.tokens:
                found.append(part.told(self._window))
                self._due.popleft()
        return tuple(one for one in found if one is not None)


def _longer(values: Values, n: int) -> Values:
    """The same with zeros behind it, `n` rows."""
    return np.concatenate([values, np.zeros((n - len(values), *values.shape[1:]), values.dtype)])
