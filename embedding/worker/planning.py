"""From row ids to a local block: which rows to pull, and the tokens in local row numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from embedding.models.base import LocalBlock
from embedding.records import CodeArray, FloatArray, IntArray


@dataclass(frozen=True)
class Part:
    """A stretch of text, coded.

    table      int64 [w], row ids, -1 for words without a row
    codes      int32 [n], index into `table` of each token
    sentences  int32 [m + 1], token offsets
    """

    table: IntArray
    codes: CodeArray
    sentences: CodeArray

    @classmethod
    def of_ids(cls, ids: IntArray, sentences: CodeArray) -> Part:
        """From the row id of each token, int64 [n]."""
        table, codes = np.unique(ids, return_inverse=True)
        return cls(table, codes.astype(np.int32), sentences)

    @property
    def ids(self) -> IntArray:
        """int64 [n], row id of each token, -1 for unknown words."""
        found: IntArray = self.table[self.codes]
        return found


@dataclass(frozen=True)
class Plan:
    """What one block needs.

    words   int64 [U], ids of the block's words, increasing: rows to pull of `in` and of `out`
    extras  int64 [E], ids of noise words that are not among them, increasing: rows of `out`
    block   tokens in local rows: `words`, then `extras`
    """

    words: IntArray
    extras: IntArray
    block: LocalBlock

    @property
    def contexts(self) -> IntArray:
        """int64 [U + E], rows of `out` to pull, distinct, in local order."""
        return np.concatenate([self.words, self.extras])


def plan(
    parts: Sequence[Part], pool: IntArray, keep: Callable[[IntArray], FloatArray] | None = None
) -> Plan:
    """Plan a block.

    parts  coded text; each table holds words that occur
    pool   int64 [p], row ids drawn from the noise distribution, with repetition
    keep   ids int64 [U] → float32 [U], probability to keep a word; None keeps all
    """
    every = np.concatenate([part.table for part in parts]) if parts else np.empty(0, np.int64)
    words = np.unique(every[every >= 0])
    extras = np.setdiff1d(pool, words)
    tokens = [_local(words, part.table)[part.codes] for part in parts]
    inside = _local(words, pool)
    noise = np.where(inside >= 0, inside, len(words) + np.searchsorted(extras, pool))
    block = LocalBlock(
        tokens=np.concatenate(tokens) if tokens else np.empty(0, np.int32),
        sentences=offsets(parts),
        keep=np.ones(len(words), dtype=np.float32) if keep is None else keep(words),
        pool=noise.astype(np.int32),
        ids=np.concatenate([words, extras]),
    )
    return Plan(words=words, extras=extras, block=block)


def _local(words: IntArray, ids: IntArray) -> CodeArray:
    """int32: place of each id in the sorted `words`, -1 for one that is not there."""
    if not len(words):
        return np.full(len(ids), -1, dtype=np.int32)
    at = np.searchsorted(words, ids)
    at[at == len(words)] = 0
    return np.where(words[at] == ids, at, -1).astype(np.int32)


def offsets(parts: Sequence[Part]) -> CodeArray:
    """Sentence offsets of all parts in one."""
    offsets = [np.zeros(1, dtype=np.int64)]
    base = 0
    for part in parts:
        offsets.append(part.sentences[1:].astype(np.int64) + base)
        base += len(part.codes)
    return np.concatenate(offsets).astype(np.int32)
