"""The n-grams of the words of a test's block, as rows behind the words' own rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.subwords import gram_buckets


@dataclass(frozen=True)
class LocalGrams:
    """rows     int32, rows of `vectors`, word after word; n_words and above
    offsets  int32 [n_words + 1]
    buckets  int64 [g], bucket of row n_words + i, increasing
    """

    rows: CodeArray
    offsets: CodeArray
    buckets: IntArray

    def means(self, vectors: FloatArray) -> FloatArray:
        """float32 [n_words, dim]: mean of each word's own row and its n-gram rows."""
        known = len(self.offsets) - 1
        sizes = np.diff(self.offsets)
        total = vectors[:known].astype(np.float64)
        np.add.at(total, np.repeat(np.arange(known), sizes), vectors[self.rows])
        means: FloatArray = (total / (1 + sizes)[:, None]).astype(np.float32)
        return means


def local_grams(words: Sequence[str], buckets: int) -> LocalGrams:
    found = [gram_buckets(word, buckets) for word in words]
    offsets = np.cumsum([0, *map(len, found)]).astype(np.int32)
    distinct, place = np.unique(np.concatenate(found), return_inverse=True)
    rows = (place + len(words)).astype(np.int32)
    return LocalGrams(rows, offsets, distinct.astype(np.int64))
