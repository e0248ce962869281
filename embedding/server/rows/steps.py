"""What is done to rows on a device: taken out, added to, stepped by AdaGrad."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from embedding.kernel.devices import DeviceArray
from embedding.kernel.records import FloatArray, HalfArray, IntArray
from embedding.server.rows.fetching import adagrad_rows, add_rows, gather_rows, load


class RowSteps(Protocol):
    """Ways to read and change some rows of a table float32 [capacity, dim], all on one device.

    where  int64 [n], places of rows; those that are changed are distinct and not negative
    delta  float32 or float16 [n, dim]
    """

    def gather(self, rows: DeviceArray, where: DeviceArray) -> DeviceArray:
        """Rows float32 [n, dim]; a negative place gives zeros."""

    def add(self, rows: DeviceArray, where: DeviceArray, delta: DeviceArray, scale: float) -> None:
        """rows[where] += scale · delta."""

    def adagrad(
        self,
        rows: DeviceArray,
        moved: DeviceArray,
        where: DeviceArray,
        delta: DeviceArray,
        scale: float,
        rate: float,
    ) -> None:
        """moved += mean(d²), row += d · min(1, rate/√moved), d = scale · delta.

        AdaGrad (Duchi 2011) with one accumulator a row; moved float32 [capacity].
        """


class FetchingSteps:
    """See RowSteps; on the CPU, with rows on their way from memory while others are worked on.

    The kernels are loaded on construction.
    """

    def __init__(self) -> None:
        load()

    def gather(self, rows: FloatArray, where: IntArray) -> FloatArray:
        found: FloatArray = np.empty((len(where), rows.shape[1]), dtype=np.float32)
        gather_rows(rows, _places(where), found)
        return found

    def add(
        self, rows: FloatArray, where: IntArray, delta: FloatArray | HalfArray, scale: float
    ) -> None:
        add_rows(rows, _places(where), _whole(delta), np.float32(scale))

    def adagrad(
        self,
        rows: FloatArray,
        moved: FloatArray,
        where: IntArray,
        delta: FloatArray | HalfArray,
        scale: float,
        rate: float,
    ) -> None:
        adagrad_rows(
            rows, moved, _places(where), _whole(delta), np.float32(scale), np.float32(rate)
        )


def _places(where: IntArray) -> IntArray:
    """As kernels take them: those of a message may not be written to, and numba would compile all
    of a kernel again for them."""
    return np.require(where, np.int64, ["C", "W"])


def _whole(delta: FloatArray | HalfArray) -> FloatArray:
    return np.ascontiguousarray(delta, dtype=np.float32)
