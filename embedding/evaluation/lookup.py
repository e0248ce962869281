"""Finding gold words in a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from embedding.kernel.devices import DeviceArray, to_host
from embedding.kernel.records import FloatArray, IntArray

RowLookup = Callable[[Sequence[str]], IntArray]
"""Rows of words, int64, -1 for an unknown one; `Snapshot.rows` is one."""


def find(rows: RowLookup, words: Sequence[str]) -> IntArray:
    """int64 [n]: the row of each word as written, else in lower case, else -1."""
    indices = rows(words).copy()
    missing = indices < 0
    if missing.any():
        lowered = [word.lower() for word, absent in zip(words, missing, strict=True) if absent]
        indices[missing] = rows(lowered)
    return indices


def unit(vectors: DeviceArray) -> DeviceArray:
    """float [n, d] rows of length 1, on any device; a row of zeros stays one."""
    if isinstance(vectors, np.ndarray):
        length = np.linalg.norm(vectors, axis=1)
    else:
        length = vectors.norm(dim=1)
    length[length == 0.0] = 1.0
    return vectors / length[:, None]


class NearestRows:
    """Keeps the n rows nearest to one query (snapshots/nearness.py).

    query   float [d] on any device; blocks that are shown come from the same device
    centre  float [d], what all words have in common; None: nothing
    """

    def __init__(self, query: DeviceArray, n: int, centre: DeviceArray | None = None) -> None:
        self._centre = query * 0.0 if centre is None else centre
        self._query = unit(unit(query[None]) - self._centre)[0]
        self._n = n
        self._near: FloatArray = np.empty(0, dtype=np.float32)
        self._rows: IntArray = np.empty(0, dtype=np.int64)

    def show(self, rows: IntArray, vectors: DeviceArray, sure: FloatArray) -> None:
        """A block: rows int64 [m] by which vectors float [m, d] are known, `sureness` float [m].

        Zeros are left out.
        """
        nearness = to_host(unit(unit(vectors) - self._centre) @ self._query) * sure
        nearness[~to_host((vectors != 0).any(1))] = -np.inf
        near, rows = np.concatenate([self._near, nearness]), np.concatenate([self._rows, rows])
        best = np.argsort(-near, kind="stable")[: self._n]
        self._near, self._rows = near[best], rows[best]

    def best(self) -> list[tuple[int, float]]:
        """(row, nearness), highest first."""
        pairs = zip(self._rows.tolist(), self._near.tolist(), strict=True)
        return [(row, near) for row, near in pairs if near > -2.0]
