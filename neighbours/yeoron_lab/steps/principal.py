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

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray

DirectionArray = npt.NDArray[np.int8]
"""int8 [k, dim]: directions, of any length."""
_SAMPLE = 1024
_ROWS_EACH = 100
"""Rows that a direction has to be worth its bytes for."""
_TURNS = 3
_LARGEST = 127
_LEAST = 1e-6
"""Part of a direction that is left beside the ones before it, below which it adds nothing."""
_ROWS = 48
"""Its kernels take so many rows at a time, or a divisor of it, and add up a rest otherwise."""
_ALONE = 1 << 18
"""Products (rows · inner · columns) that OpenBLAS still computes without threads
(interface/gemm.c). Each wait of its threads for each other costs more than these products do, as
soon as node and server share cores; in parts a number comes out as it does of the whole."""


def principal(values: FloatArray, most: int) -> DirectionArray:
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
        basis, _ = np.linalg.qr(_product(unit.T, _product(unit, basis)))
    inner = _product(unit, basis)
    _, order = np.linalg.eigh(inner.T @ inner)
    basis = basis @ order[:, ::-1]
    scale = _LARGEST / np.abs(basis).max(axis=0)
    directions: DirectionArray = np.round(basis * scale).T.astype(np.int8)
    return directions


def _parts(rows: int, inner: int, columns: int) -> Iterator[slice]:
    """Rows of a product, as many at a time as BLAS takes without threads."""
    step = max(1, _ALONE // max(1, inner * columns))
    step -= step % _ROWS if step > _ROWS else 0
    return (slice(at, at + step) for at in range(0, rows, step))


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    product = np.empty((len(left), right.shape[1]), dtype=np.float32)
    for part in _parts(len(left), left.shape[1], right.shape[1]):
        np.matmul(left[part], right, out=product[part])
    return product


def _without(
    values: FloatArray, into: FloatArray, out_of: FloatArray, out: FloatArray
) -> FloatArray:
    """values - (values @ into) @ out_of in `out`, a part at a time: it stays in the cache."""
    for part in _parts(len(values), values.shape[1], into.shape[1]):
        np.matmul(values[part] @ into, out_of, out=out[part])
        np.subtract(values[part], out[part], out=out[part])
    return out


class Basis:
    """An orthonormal basis whose first k axes span `directions`; without any: the unit axes.

    It is kept as I - reflectors·folds, so that turning n rows takes 4·n·dim·k products.
    """

    def __init__(self, directions: DirectionArray) -> None:
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
        return _without(values, reflectors, folds, np.empty_like(values))

    def back(self, values: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Inverse of `turned`; in `out`, of the same shape, where it is given."""
        reflectors, folds = self._down
        out = np.empty_like(values) if out is None else out
        return _without(values, folds.T, reflectors.T, out)
