"""From row ids to a local block: which rows to pull, and the tokens in local row numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedding.models.base import LocalBlock
from embedding.records import CodeArray, FloatArray, IntArray


@dataclass(frozen=True)
class Plan:
    """What one block needs.

    vectors   int64 [U], rows of `in` to pull, strictly increasing
    contexts  int64 [U + P], rows of `out` to pull, strictly increasing
    order     int64 [U + P], position in `contexts` of each local row
    block     tokens in local rows
    """

    vectors: IntArray
    contexts: IntArray
    order: IntArray
    block: LocalBlock


def plan(
    ids: IntArray, sentences: CodeArray, pool: IntArray, keep: FloatArray | None = None
) -> Plan:
    """Plan a block.

    ids        int64 [n], row id of each token, -1 for unknown words
    sentences  int32 [m + 1] token offsets
    pool       int64 [p], row ids drawn from the noise distribution, with repetition
    keep       float32 [U] for the sorted distinct ids (see `Lexicon.keep`); None keeps all
    """
    words = np.unique(ids[ids >= 0])
    tokens = np.where(ids >= 0, np.searchsorted(words, ids), -1).astype(np.int32)
    extra = np.setdiff1d(pool, words)
    local = np.concatenate([words, extra])
    contexts = np.sort(local)
    order = np.searchsorted(contexts, local)
    rank = np.empty(len(local), dtype=np.int64)
    rank[order] = np.arange(len(local))
    block = LocalBlock(
        tokens=tokens,
        sentences=sentences.astype(np.int32, copy=False),
        keep=np.ones(len(words), dtype=np.float32) if keep is None else keep,
        pool=rank[np.searchsorted(contexts, pool)].astype(np.int32),
        ids=local,
    )
    return Plan(vectors=words, contexts=contexts, order=order, block=block)


def join(parts: list[tuple[IntArray, CodeArray]]) -> tuple[IntArray, CodeArray]:
    """Concatenate (ids, sentence offsets) pairs into one."""
    if not parts:
        return np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int32)
    ids = np.concatenate([part[0] for part in parts])
    offsets = [np.zeros(1, dtype=np.int64)]
    base = 0
    for tokens, sentences in parts:
        offsets.append(sentences[1:].astype(np.int64) + base)
        base += len(tokens)
    return ids, np.concatenate(offsets).astype(np.int32)
