"""From row ids to a local block: which rows to pull, and the tokens in local row numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embedding.kernel.records import CodeArray, FloatArray, IntArray, Table
from embedding.models.base import LocalBlock, Track
from embedding.models.jit import kernel
from embedding.worker.words.lexicon import NodeLexicon


@dataclass(frozen=True)
class CodedText:
    """A stretch of text, coded.

    table      int64 [w], row ids, -1 for words without a row
    codes      int32 [n], index into `table` of each token
    sentences  int32 [m + 1], token offsets
    """

    table: IntArray
    codes: CodeArray
    sentences: CodeArray

    @classmethod
    def of_ids(cls, ids: IntArray, sentences: CodeArray) -> CodedText:
        """From the row id of each token, int64 [n], in time and memory of the greatest id."""
        if not len(ids):
            return cls(ids, np.empty(0, dtype=np.int32), sentences)
        present = np.zeros(int(ids.max()) + 2, dtype=np.bool_)
        present[ids] = True  # -1 is the last place
        table = np.flatnonzero(present[:-1])
        place = np.empty(len(present), dtype=np.int32)
        if present[-1]:
            table = np.concatenate([np.full(1, -1), table])
        place[table] = np.arange(len(table), dtype=np.int32)
        return cls(table, place[ids], sentences)

    @property
    def ids(self) -> IntArray:
        """int64 [n], row id of each token, -1 for unknown words."""
        return self.table[self.codes]


@dataclass(frozen=True)
class BlockPlan:
    """What one block needs.

    words   int64 [U], ids of the block's words: rows to pull of `in` and of `out`
    extras  int64 [E], ids of noise words that are not among them: rows of `out`
    block   tokens in local rows: `words`, then `extras`, each in the order of appearance
    grams   int64 [G], n-gram buckets, whose rows follow those of the words (fastText)
    """

    words: IntArray
    extras: IntArray
    block: LocalBlock
    grams: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def contexts(self) -> IntArray:
        """int64 [U + E], rows of `out` to pull, distinct, in local order."""
        return np.concatenate([self.words, self.extras])

    def rows(self) -> dict[Table, IntArray]:
        """Rows to pull by table, in local order; `sub` only where there are n-grams."""
        rows = {Table.IN: self.words, Table.OUT: self.contexts}
        return rows | {Table.SUB: self.grams} if len(self.grams) else rows


@dataclass(frozen=True)
class Rehearsed:
    """The sentences of a tick as the replay memory knows them.

    keys     int64 [m], the memory's key of each drawn sentence, -1 for a fresh one: that keeps
             its first priority until it is drawn
    weights  float32 [m], importance weights times those of the sources; None: all 1
    track    what the memory wants to know of each
    """

    keys: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weights: FloatArray | None = None
    track: Track = Track.NONE

    def paced(self, factors: FloatArray | None, sentences: int) -> Rehearsed:
        """With other rates for what is fresh.

        factors    float32 [f], of the fresh sentences, which come first; None: 1
        sentences  how many there are with what is drawn from the past
        """
        if factors is None:
            return self
        weights = np.ones(sentences, np.float32) if self.weights is None else self.weights.copy()
        weights[: len(factors)] *= factors
        return replace(self, weights=weights)

    def longer(self, sentences: int) -> Rehearsed:
        """With so many sentences behind, that are not in the memory."""
        if self.weights is None and self.track is Track.NONE:
            return self
        weights = np.empty(0, np.float32) if self.weights is None else self.weights
        return replace(
            self,
            keys=np.concatenate([self.keys, np.full(sentences, -1, dtype=np.int64)]),
            weights=np.concatenate([weights, np.ones(sentences, np.float32)]),
        )

    def into(self, planned: BlockPlan) -> BlockPlan:
        """The plan whose block is weighted and measured."""
        if self.weights is None and self.track is Track.NONE:
            return planned
        block = replace(planned.block, weights=self.weights, track=self.track)
        return replace(planned, block=block)


@kernel()
def _name(words: Any, local: Any, named: Any, start: int) -> int:
    """Give each place that has none the next local row; -1 is passed over. Returns the next."""
    rows = start
    for i in range(len(words)):
        place = words[i]
        if place >= 0 and local[place] < 0:
            local[place] = rows
            named[rows] = place
            rows += 1
    return rows


@kernel()
def _look(words: Any, local: Any, out: Any) -> None:
    for i in range(len(words)):
        out[i] = local[words[i]] if words[i] >= 0 else -1


@kernel()
def _spell(table: Any, codes: Any, out: Any) -> None:
    """table[codes] into `out`."""
    for i in range(len(codes)):
        out[i] = table[codes[i]]


def plan(
    parts: Sequence[CodedText],
    pool: IntArray,
    lexicon: NodeLexicon,
    keep: Callable[[IntArray], FloatArray] | None = None,
) -> BlockPlan:
    """Plan a block, in time proportional to its length and the lexicon's.

    parts    coded text; each table holds ids of words that occur
    pool     int64 [p], ids drawn from the noise distribution, with repetition
    keep     ids int64 [U] → float32 [U], probability to keep a word; None keeps all
    """
    tables = [_places(lexicon, part.table) for part in parts]
    noise = _places(lexicon, pool)
    local = np.full(len(lexicon.ids), -1, dtype=np.int32)
    in_order = np.empty(len(local), dtype=np.int64)
    n_words = 0
    for table in tables:
        n_words = _name(table, local, in_order, n_words)
    rows = _name(noise, local, in_order, n_words)
    tokens = np.empty(sum(len(part.codes) for part in parts), dtype=np.int32)
    start = 0
    for part, table in zip(parts, tables, strict=True):
        named = np.empty(len(table), dtype=np.int32)
        _look(table, local, named)
        _spell(named, part.codes, tokens[start : start + len(part.codes)])
        start += len(part.codes)
    drawn = np.empty(len(noise), dtype=np.int32)
    _look(noise, local, drawn)
    ids = lexicon.ids[in_order[:rows]]
    words = ids[:n_words]
    block = LocalBlock(
        tokens=tokens,
        sentences=offsets(parts),
        keep=np.ones(n_words, dtype=np.float32) if keep is None else keep(words),
        pool=drawn,
        ids=ids,
    )
    return BlockPlan(words=words, extras=ids[n_words:], block=block)


def local_rows(buckets: CodeArray, size: int, first: int) -> tuple[CodeArray, IntArray]:
    """Number places (int32 [n], below `size`) from `first` on, in the order of appearance.

    Returns (row of each, int32 [n]; place of each row, int64 [G]).
    """
    local = np.full(size, -1, dtype=np.int32)
    in_order = np.empty(min(size, len(buckets)), dtype=np.int64)
    rows = _name(buckets, local, in_order, 0)
    out = np.empty(len(buckets), dtype=np.int32)
    _look(buckets, local, out)
    out += np.int32(first)
    return out, in_order[:rows]


def _places(lexicon: NodeLexicon, ids: IntArray) -> IntArray:
    known = ids >= 0
    if known.all():
        return lexicon.places(ids)
    places = np.full(len(ids), -1, dtype=np.int64)
    places[known] = lexicon.places(ids[known])
    return places


def offsets(parts: Sequence[CodedText]) -> CodeArray:
    """Sentence offsets of all parts in one."""
    offsets = [np.zeros(1, dtype=np.int64)]
    base = 0
    for part in parts:
        offsets.append(part.sentences[1:].astype(np.int64) + base)
        base += len(part.codes)
    return np.concatenate(offsets).astype(np.int32)
