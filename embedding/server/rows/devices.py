"""Where rows lie: in numpy arrays on the CPU, in torch tensors on a GPU.

torch is imported for a GPU alone (`torchdevice.py`): see `kernel/devices.py`.
"""

from __future__ import annotations

import math
import mmap
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow
from embedding.kernel.devices import DeviceArray, on_gpu
from embedding.kernel.records import FloatArray, HalfArray, IntArray
from embedding.server.rows.fetching import adagrad_rows, add_rows, gather_rows, load

# Tables grow by doubling. An allocator writes zeros into all of a new table, so that the half that
# is still empty takes memory as well; pages of the system are zeros anyway and come when they are
# needed. Rows lie at random places of gigabytes, and with pages of 4 KB nearly each of them misses
# the processor's address cache; with pages of 2 MB it holds five hundred times as much
# (`python -m benchmarks shards` measures what that is worth).
OWN = 128 * 1024
"""Bytes from which on a table has pages of its own: once it has grown, the old ones are gone."""
LARGE = 32 * 1024 * 1024
"""Bytes from which on they are large: of a smaller one the last, half empty page would count."""


class SharedRows(Protocol):
    """Tables that processes of this host have together, one after the other; zeros at first.

    on_gpu  they are on a GPU
    """

    on_gpu: bool

    @property
    def path(self) -> str:
        """Where other processes of this host find them (`SharedTables`)."""

    def table(self, at: int) -> DeviceArray:
        """One table, float32 [rows[at], dim]."""


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


class RowDevice(Protocol):
    """What differs between devices."""

    type: Literal["cpu", "cuda"]

    def zeros(self, *shape: int) -> DeviceArray:
        """float32 zeros."""

    def place(self, values: DeviceArray) -> DeviceArray:
        """The values there; what is there already is not copied and may be read only."""

    def host(self, values: DeviceArray) -> npt.NDArray[Any]:
        """Values that are there as a numpy array, once they are computed."""

    def as_sent(self, rows: DeviceArray, half: bool) -> FloatArray | HalfArray:
        """Rows as they leave the server; a GPU rounds them before they leave it."""

    def steps(self, dim: int) -> RowSteps:
        """What changes rows of `dim` columns."""

    def wait(self) -> None:
        """Return once all that was asked for is computed."""

    def limit_threads(self, threads: int) -> None:
        """Products of matrices take at most so many in this process, from now on."""


def _places(where: IntArray) -> IntArray:
    """As kernels take them: those of a message may not be written to, and numba would compile all
    of a kernel again for them."""
    return np.require(where, np.int64, ["C", "W"])


def _whole(delta: FloatArray | HalfArray) -> FloatArray:
    return np.ascontiguousarray(delta, dtype=np.float32)


class HostDevice:
    """The CPU and its memory; also RowSteps, with rows on their way from memory while others are
    worked on."""

    type: Literal["cpu", "cuda"] = "cpu"

    def __str__(self) -> str:
        return self.type

    def zeros(self, *shape: int) -> DeviceArray:
        size = 4 * math.prod(shape)
        if size < OWN or not hasattr(mmap, "MAP_PRIVATE"):
            return np.zeros(shape, dtype=np.float32)
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if size >= LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        return np.frombuffer(pages, dtype=np.float32).reshape(shape)

    def place(self, values: DeviceArray) -> DeviceArray:
        return values

    def host(self, values: DeviceArray) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = values
        return array

    def as_sent(self, rows: DeviceArray, half: bool) -> FloatArray | HalfArray:
        return narrow(rows) if half else rows

    def steps(self, dim: int) -> RowSteps:
        del dim
        load()
        return self

    def gather(self, rows: FloatArray, where: IntArray) -> FloatArray:
        gathered: FloatArray = np.empty((len(where), rows.shape[1]), dtype=np.float32)
        gather_rows(rows, _places(where), gathered)
        return gathered

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

    def wait(self) -> None:
        """Nothing is computed later."""

    def limit_threads(self, threads: int) -> None:
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads, user_api="blas")


def pick_device(name: Literal["auto", "cpu", "cuda"], *, shared: bool = False) -> RowDevice:
    """The device of that name; ConfigError when a GPU is asked for and there is none.

    shared  nodes train on the tables in place: on a GPU only where it is asked for, as that has a
            kernel for few models
    """
    if (shared and name == "auto") or not on_gpu(name):
        return HostDevice()
    from embedding.server.rows.torchdevice import gpu

    return gpu()


def beside(values: npt.NDArray[Any], rows: DeviceArray) -> DeviceArray:
    """The values where `rows` lie."""
    if isinstance(rows, np.ndarray):
        return values
    from embedding.server.rows.torchdevice import at_device

    return at_device(values, rows.device)


def contiguous(rows: DeviceArray) -> DeviceArray:
    """The same values, those of a row side by side."""
    return np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows.contiguous()
