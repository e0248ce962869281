"""Where rows lie: in numpy arrays on the CPU, in torch tensors on a GPU.

torch is imported for a GPU alone (`torchdevice.py`): see `kernel/devices.py`.

A row of a table that no cache holds takes some 100 ns to come. What a loop on the CPU needs some
steps later is named to the processor now (prefetch), so that many rows are on their way at the same
time, and a row of ten million costs little more than one of ten thousand
(`python -m benchmarks shards`).
"""

# The first argument of an instruction and some of its emitter are for numba alone.
# ruff: noqa: ARG001

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from embedding.exchange.compression.halves import narrow
from embedding.kernel.devices import DeviceArray, on_gpu
from embedding.kernel.records import FloatArray, HalfArray, IntArray
from embedding.kernel.spared import spare_blas
from embedding.models.jit import instruction, kernel

AHEAD = 32
"""Rows that are on their way at the same time. Of 12, 24 and 48 measured, more were quicker."""
_LINE = 64
_I32 = ir.IntType(32)
_EmitRows = Callable[..., Any]


@instruction
def _prefetch(context: Any, address: Any) -> tuple[Any, _EmitRows]:
    """Name an address that will be read or written soon; any address may be named."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.PointerType(ir.IntType(8)))
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [pointer.type],
            ir.FunctionType(ir.VoidType(), [pointer.type, _I32, _I32, _I32]),
        )
        builder.call(function, [pointer, _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(types.int64), emit


@kernel()
def add_rows(rows: Any, where: Any, delta: Any, scale: Any) -> None:
    """rows[where] += scale · delta; float32 [capacity, dim], int64 [n], float32 [n, dim]."""
    n, dim = delta.shape
    wide = 4 * dim
    base = rows.ctypes.data
    for i in range(n):
        if i + AHEAD < n:
            named = base + where[i + AHEAD] * wide
            for at in range(0, wide, _LINE):
                _prefetch(named + at)
        row = where[i]
        for j in range(dim):
            rows[row, j] += scale * delta[i, j]


@kernel()
def gather_rows(rows: Any, where: Any, gathered: Any) -> None:
    """gathered = rows[where], zeros where that is negative; float32 [n, dim]."""
    n, dim = gathered.shape
    wide = 4 * dim
    base = rows.ctypes.data
    for i in range(n):
        if i + AHEAD < n and where[i + AHEAD] >= 0:
            named = base + where[i + AHEAD] * wide
            for at in range(0, wide, _LINE):
                _prefetch(named + at)
        row = where[i]
        if row < 0:
            gathered[i] = np.float32(0.0)
        else:
            for j in range(dim):
                gathered[i, j] = rows[row, j]


@kernel()
def adagrad_rows(rows: Any, moved: Any, where: Any, delta: Any, scale: Any, rate: Any) -> None:
    """moved[where] += mean(d²), rows[where] += d · min(1, rate/√moved), d = scale · delta.

    float32 [capacity, dim] and [capacity], int64 [n], float32 [n, dim]
    """
    n, dim = delta.shape
    wide = 4 * dim
    base, sums = rows.ctypes.data, moved.ctypes.data
    for i in range(n):
        if i + AHEAD < n:
            named = base + where[i + AHEAD] * wide
            _prefetch(sums + 4 * where[i + AHEAD])
            for at in range(0, wide, _LINE):
                _prefetch(named + at)
        row = where[i]
        squares = np.float32(0.0)
        for j in range(dim):
            step = scale * delta[i, j]
            squares += step * step
        total = moved[row] + squares / np.float32(dim)
        moved[row] = total
        shrink = np.float32(1.0)
        if total > rate * rate:  # never 0/0: not for a row that never moved
            shrink = rate / np.sqrt(total)
        for j in range(dim):
            rows[row, j] += shrink * (scale * delta[i, j])


@kernel()
def sum_rows(rows: Any, buckets: Any, offsets: Any, sums: Any) -> None:
    """sums[i] = Σ rows[buckets[j]] over j in offsets[i]..offsets[i + 1].

    float32 [capacity, dim], int32 [g], int32 [n + 1], float32 [n, dim]
    """
    n, dim = sums.shape
    wide = 4 * dim
    base = rows.ctypes.data
    for i in range(n):
        sums[i] = np.float32(0.0)
        for g in range(offsets[i], offsets[i + 1]):
            if g + AHEAD < len(buckets):
                named = base + np.int64(buckets[g + AHEAD]) * wide
                for at in range(0, wide, _LINE):
                    _prefetch(named + at)
            row = buckets[g]
            for j in range(dim):
                sums[i, j] += rows[row, j]


@kernel()
def find_slots(ids: Any, table: Any, by_slot: Any, shift: Any, golden: Any, slots: Any) -> None:
    """Slots of ids (`rowmap.py`), -1 for one that is not alive; all one-dimensional.

    ids int64 [n]; table int32 [2^k], slots by place; by_slot int64 [slots + 1], ids by slot
    """
    n, mask = len(ids), len(table) - 1
    first, second = table.ctypes.data, by_slot.ctypes.data
    for i in range(n):
        if i + 2 * AHEAD < n:
            _prefetch(first + 4 * (ids[i + 2 * AHEAD] & mask))
        if i + AHEAD < n:
            slot = table[ids[i + AHEAD] & mask]
            if slot >= 0:
                _prefetch(second + 8 * slot)
        slot = np.int64(table[ids[i] & mask])
        step = 1
        while slot >= 0 and by_slot[slot] != ids[i]:
            hashed = np.int64((np.uint64(ids[i]) * golden) >> shift)
            slot = np.int64(table[(hashed + step * (step - 1) // 2) & mask])
            step += 1
        slots[i] = slot


@cache
def load_kernels() -> None:
    """Compile them, or take them from the disk: else whoever asks first waits for it, seconds."""
    spare_blas()
    rows = np.zeros((1, 1), dtype=np.float32)
    where = np.zeros(1, dtype=np.int64)
    fixed = rows.copy()
    fixed.flags.writeable = False  # as deltas of a message are
    for delta in (rows.copy(), fixed):
        add_rows(rows, where, delta, np.float32(1.0))
    gather_rows(rows, where, np.zeros_like(rows))
    table, by_slot = np.full(2, -1, dtype=np.int32), np.full(1, -1, dtype=np.int64)
    asked = where.copy()
    asked.flags.writeable = False  # as ids of a message are
    for ids in (where, asked):
        find_slots(ids, table, by_slot, np.uint64(63), np.uint64(1), np.zeros_like(where))


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
        load_kernels()
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
