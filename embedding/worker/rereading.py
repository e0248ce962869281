"""What a node read in the windows before, read again by the tables that a new one begins with.

What the contexts of a word say lies where the tables have them at that time, and a model that goes
on learning moves them all: sums of two windows differ although the texts do not. So a window has a
compass (Di Carlo et al. 2019): the tables as they are when it begins. The texts of the windows
before are read again by it, and those of the window as they come; then both lie in one space. Texts
are row ids in the memory of this process, bounded, and are gone with it (docs/trends.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.compression.halves import narrow
from embedding.exchange.payload import Reread
from embedding.records import (
    CodeArray,
    FloatArray,
    HalfArray,
    IntArray,
    Table,
    TokenBlock,
    WindowUnit,
)
from embedding.worker.counting import window_starts
from embedding.worker.slopes import MOST, add_usage
from embedding.worker.ticks import Begun

PARTS = 8
"""Documents are dealt out to so many parts: how far these differ says how sure the past is."""
SHARE = 8
"""Tokens that are read again, at most, for each fresh one: a window's first ticks do it."""
TWICE = 2
"""Mentions that a word needs in a part."""
_PULLED = 8_192
Tables = Mapping[Table, FloatArray | HalfArray]
"""Rows [n, dim] of `in` and of `out`."""
_NONE = -1


@dataclass(frozen=True)
class Compass:
    """The tables when a window begins.

    ids                int64 [v], increasing
    vectors, contexts  float32 [v, dim], rows of `in` and `out`
    keep               float32 [v], probability to keep a word
    """

    ids: IntArray
    vectors: FloatArray
    contexts: FloatArray
    keep: FloatArray

    @classmethod
    def pulled(
        cls,
        ids: IntArray,
        keep: FloatArray,
        pull: Callable[[IntArray], Tables],
    ) -> Compass:
        """From rows (`in`, `out`) that are pulled some thousands at a time."""
        parts = [pull(ids[at : at + _PULLED]) for at in range(0, len(ids), _PULLED)]
        vectors, contexts = (
            np.concatenate([part[table] for part in parts]).astype(np.float32)
            for table in (Table.IN, Table.OUT)
        )
        return cls(ids, vectors, contexts, keep)

    def places(self, ids: IntArray) -> IntArray:
        """int64 [n], the row of each id; -1 for a word that is younger than the compass."""
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, at, _NONE)

    def rows(self, ids: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Vectors and contexts float32 [n, dim] and keep [n]; zeros for a younger word."""
        at = self.places(ids)
        there = at >= 0
        found = []
        for table in (self.vectors, self.contexts, self.keep):
            rows = np.zeros((len(ids), *table.shape[1:]), dtype=np.float32)
            rows[there] = table[at[there]]
            found.append(rows)
        return found[0], found[1], found[2]


@dataclass(frozen=True)
class _Stretch:
    """Sentences of one source and part: row ids int64 [n], -1 for none, and offsets [m + 1]."""

    source: str
    part: int
    ids: IntArray
    sentences: IntArray


class PastTexts:
    """The texts of the last windows as row ids; `most` tokens, the oldest leave first."""

    def __init__(self, unit: WindowUnit, most: int, windows: int) -> None:
        self.most = most
        self.windows = windows
        self.tokens = 0
        self._unit = unit
        self._held: dict[int, deque[_Stretch]] = {}
        self._documents = 0

    def add(self, blocks: Sequence[TokenBlock], ids: Sequence[IntArray]) -> None:
        """Remember blocks; ids: for each block int64 [n], the row id of each token."""
        for block, tokens in zip(blocks, ids, strict=True):
            lengths = np.diff(block.document_tokens())
            parts = (self._documents + np.arange(len(lengths))) % PARTS
            self._documents += len(lengths)
            owner = np.repeat(np.arange(len(lengths)), lengths)
            sentence = np.repeat(np.arange(len(block.sentences) - 1), np.diff(block.sentences))
            keys = window_starts(block, self._unit) * PARTS + parts
            for key in np.unique(keys).tolist():
                at = np.flatnonzero((keys == key)[owner])
                if not len(at):
                    continue
                _, firsts = np.unique(sentence[at], return_index=True)
                ends = np.append(firsts, len(at))
                stretch = _Stretch(block.source, key % PARTS, tokens[at], ends)
                self._held.setdefault(key // PARTS, deque()).append(stretch)
                self.tokens += len(at)
        self._shorten()

    def before(self, window: int) -> dict[tuple[str, int], list[_Stretch]]:
        """What is remembered of the windows before one, by source and part."""
        found: dict[tuple[str, int], list[_Stretch]] = {}
        for start in sorted(start for start in self._held if start < window)[-self.windows :]:
            for stretch in self._held[start]:
                found.setdefault((stretch.source, stretch.part), []).append(stretch)
        return found

    def _shorten(self) -> None:
        while self.tokens > self.most or len(self._held) > self.windows + 1:
            oldest = min(self._held)
            self.tokens -= len(self._held[oldest].popleft().ids)
            if not self._held[oldest]:
                del self._held[oldest]


class Rereading:
    """A node's compass, and what it has to read again by it."""

    def __init__(self, context: int, past: PastTexts) -> None:
        """context: words on each side."""
        self.context = context
        self.past = past
        self.compass: Compass | None = None
        self._window: int | None = None
        self._due: deque[tuple[str, int, list[_Stretch]]] = deque()

    def begin(self, begun: Begun, pull: Callable[[IntArray], Tables]) -> None:
        """A window begins: take the tables as they are, if there is anything to compare it with.

        What was not read again for the window before is left.
        """
        texts = self.past.before(begun.window) if len(begun.ids) else {}
        self._window, self.compass = begun.window, None
        try:
            if texts:
                self.compass = Compass.pulled(begun.ids, begun.keep, pull)
        except RefusedError:  # a word was evicted meanwhile: this window goes without
            texts = {}
        order = sorted(texts, key=lambda key: (key[1], key[0]))
        self._due = deque((*key, texts[key]) for key in order)

    def read(self, fresh: int) -> tuple[Reread, ...]:
        """Read the next parts again, about `SHARE` tokens for each of `fresh` ones."""
        found: list[Reread] = []
        left = SHARE * fresh
        while self._due and left > 0:
            source, part, stretches = self._due.popleft()
            left -= sum(len(stretch.ids) for stretch in stretches)
            one = self._sums(source, part, stretches)
            if one is not None:
                found.append(one)
        return tuple(found)

    def _sums(self, source: str, part: int, stretches: Sequence[_Stretch]) -> Reread | None:
        compass = self.compass
        if compass is None or self._window is None or not len(compass.ids):
            return None
        tokens = compass.places(np.concatenate([stretch.ids for stretch in stretches]))
        times = np.bincount(tokens[tokens >= 0], minlength=len(compass.ids))
        words = np.flatnonzero(times >= TWICE)
        if not len(words):
            return None
        rows = np.full(len(compass.ids), _NONE, dtype=np.int32)
        rows[words] = np.arange(len(words), dtype=np.int32)
        owners = np.where(tokens >= 0, rows[tokens], _NONE).astype(np.int32)
        slopes = np.zeros((len(words), compass.contexts.shape[1]), dtype=np.float32)
        pairs = np.zeros(len(words), dtype=np.float32)
        add_usage(
            owners,
            tokens.astype(np.int32),
            _offsets(stretches),
            compass.keep,
            compass.vectors,
            compass.contexts,
            self.context,
            slopes,
            pairs,
        )
        held = np.flatnonzero(pairs > 0)
        halves = narrow(np.clip(slopes[held], -MOST, MOST))
        ids = compass.ids[words[held]]
        return Reread(self._window, source, part, ids, halves, pairs[held])


def _offsets(stretches: Sequence[_Stretch]) -> CodeArray:
    """Sentence offsets of all stretches in one, int32."""
    starts = np.cumsum([0, *(len(stretch.ids) for stretch in stretches)])
    firsts = [s.sentences[:-1] + at for s, at in zip(stretches, starts, strict=False)]
    return np.concatenate([*firsts, starts[-1:]]).astype(np.int32)
