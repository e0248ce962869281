"""Rows seen along the directions in which most of what there is to send lies.

What the rows of a push moved by is alike: noise rows were drawn together towards the words of the
block, and a few directions hold most of it. Written along them, a row has a few large numbers and
many small ones, which take few bits at the same error (transform coding; Goyal 2001, "Theoretical
foundations of transform coding", sections 2 and 3; low rank for gradients: Vogels 2019, PowerSGD).

The directions travel with the rows, a byte a number. Both sides make the same orthonormal basis of
them, by one Householder reflection each (Golub and Van Loan, "Matrix computations", 5.1): the first
axes span the directions, the others are what is left of the unit axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.records import FloatArray

Directions = npt.NDArray[np.int8]
"""int8 [k, dim]: directions, of any length."""
_SAMPLE = 1024
_ROWS_EACH = 100
"""Rows that a direction has to be worth its bytes for."""
_TURNS = 3
_LARGEST = 127
_LEAST = 1e-6
"""Part of a direction that is left beside the ones before it, below which it adds nothing."""


def principal(values: FloatArray, most: int) -> Directions:
    """The directions, at most `most`, that hold most of rows float32 [n, dim], each of length 1.

    Subspace iteration on a sample of the rows; fewer directions for few rows or columns.
    """
    rows, dim = values.shape
    k = min(most, rows // _ROWS_EACH, dim // 4)
    if k <= 0:
        return np.empty((0, dim), dtype=np.int8)
    sample = values[:: max(1, rows // _SAMPLE)]
    length = np.sqrt(np.einsum("ij,ij->i", sample, sample))
    unit = sample[length > 0] / length[length > 0, None]
    if len(unit) < k:
        return np.empty((0, dim), dtype=np.int8)
    basis = np.random.default_rng(0).standard_normal((dim, k)).astype(np.float32)
    for _ in range(_TURNS):
        basis, _ = np.linalg.qr(unit.T @ (unit @ basis))
    inner = unit @ basis
    _, order = np.linalg.eigh(inner.T @ inner)
    basis = basis @ order[:, ::-1]
    scale = _LARGEST / np.abs(basis).max(axis=0)
    found: Directions = np.round(basis * scale).T.astype(np.int8)
    return found


class Basis:
    """An orthonormal basis whose first k axes span `directions`; without any: the unit axes.

    It is kept as I - reflectors·folds, so that turning n rows takes 4·n·dim·k products.
    """

    def __init__(self, directions: Directions) -> None:
        k, dim = directions.shape
        self.leading = k
        self._reflectors = np.zeros((dim, k))
        self._folds = np.zeros((k, dim))
        left = directions.astype(np.float64)
        for i in range(k):
            # left[i] as the reflections before this one have it
            self._reflect(i, left[i] - (left[i] @ self._reflectors[:, :i]) @ self._folds[:i])
        self._down: Any = self._reflectors.astype(np.float32), self._folds.astype(np.float32)

    def _reflect(self, i: int, direction: npt.NDArray[np.float64]) -> None:
        """Multiply by the reflection that takes what is new of a direction to axis i."""
        rest = np.linalg.norm(direction[i:])
        if rest <= _LEAST * max(1.0, float(np.linalg.norm(direction))):
            return
        normal = np.zeros(len(direction))
        normal[i:] = direction[i:] / rest
        normal[i] += np.copysign(1.0, normal[i])
        normal *= np.sqrt(2.0) / np.linalg.norm(normal)
        # (I - R·F)(I - n·n') = I - [R, n - R·(F·n)]·[F; n']
        before = self._reflectors[:, :i] @ (self._folds[:i] @ normal)
        self._reflectors[:, i] = normal - before
        self._folds[i] = normal

    def turned(self, values: FloatArray) -> FloatArray:
        """Rows float32 [n, dim] in this basis."""
        reflectors, folds = self._down
        found: FloatArray = values - (values @ reflectors) @ folds
        return found

    def back(self, values: FloatArray) -> FloatArray:
        """Inverse of `turned`."""
        reflectors, folds = self._down
        found: FloatArray = values - (values @ folds.T) @ reflectors.T
        return found
