"""The rows that a model starts from: they follow from the seed."""

from __future__ import annotations

import numpy as np

from embedding.kernel.records import FloatArray, IntArray


def first_vectors(ids: IntArray, dim: int, seed: int, columns: slice = slice(None)) -> FloatArray:
    """float32 [n, dim] uniform in ±0.5/dim, a function of (seed, id, column) alone.

    So a row starts the same after a restart, whatever the order of admission (splitmix64 finaliser,
    Steele 2014).
    """
    u64 = np.uint64
    with np.errstate(over="ignore"):
        cell = ids.astype(u64)[:, None] * u64(dim) + np.arange(dim, dtype=u64)[columns]
        z = cell + u64(1) + u64(seed % 2**32) * u64(0xD1342543DE82EF95)
        for shift, factor in (
            (None, 0x9E3779B97F4A7C15),
            (30, 0xBF58476D1CE4E5B9),
            (27, 0x94D049BB133111EB),
        ):
            if shift is not None:
                z = np.bitwise_xor(z, np.right_shift(z, u64(shift)))
            z = np.multiply(z, u64(factor))
        z = np.bitwise_xor(z, np.right_shift(z, u64(31)))
    uniform = np.right_shift(z, u64(40)).astype(np.float32) / np.float32(2**24)
    rows: FloatArray = (uniform - np.float32(0.5)) / np.float32(dim)
    return rows


class UniformDraws:
    """float32 numbers in order: those that torch draws on the CPU with the same seed.

    Its generator is the Mersenne Twister (Matsumoto and Nishimura 1998), 24 bits a number. Tables
    of n-grams have always started from these numbers.
    """

    def __init__(self, seed: int) -> None:
        self._twister = np.random.RandomState(seed % 2**32)

    def draw(self, shape: tuple[int, ...], half: float) -> FloatArray:
        """The next numbers, uniform in ±half."""
        bits = self._twister.randint(0, 2**32, size=shape, dtype=np.uint32)
        unit = (bits & np.uint32(2**24 - 1)) * 2.0**-24
        # In float64, where the product is exact: torch rounds once, too.
        low = np.float32(-half)
        numbers: FloatArray = (unit * np.float64(-2 * low) + np.float64(low)).astype(np.float32)
        return numbers
