"""Rows at random places of large tables, on the CPU: asked for from memory before they are needed.

A row of a table that no cache holds takes some 100 ns to come. What a loop needs some steps later
is named to the processor now (prefetch), so that many rows are on their way at the same time, and a
row of ten million costs little more than one of ten thousand (`python -m benchmarks shards`).
"""

# The first argument of an instruction and some of its emitter are for numba alone.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

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
def load() -> None:
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
