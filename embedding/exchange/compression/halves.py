"""float32 rows to float16 and back, with the CPU's own conversion where it has one.

numpy converts a number at a time; on the way of a row that is most of what a pull and a push cost.
Rounding is to nearest, ties to even, as numpy's.
"""

# The first argument of an instruction and some of its emitter are for numba alone.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from embedding.kernel.records import FloatArray, HalfArray
from embedding.models.jit import bare, instruction

_I64 = ir.IntType(64)
_WIDE = ir.VectorType(ir.FloatType(), 8)
_NARROW = ir.VectorType(ir.HalfType(), 8)
_LANES = 8
_ADDRESSES = types.int64(types.int64, types.int64, types.int64)
_EmitHalves = Callable[..., Any]


def _at(builder: ir.IRBuilder, address: ir.Value, at: ir.Value, kind: ir.Type, size: int) -> Any:
    offset = builder.mul(at, _I64(size))
    return builder.inttoptr(builder.add(address, offset), ir.PointerType(kind))


def _converting(given: ir.Type, size: int, made: ir.Type, made_size: int, how: str) -> _EmitHalves:
    """Convert whole chunks of eight from one address to another, by the instruction `how`.

    size, made_size  bytes of a number before and behind it
    """

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        source, target, count = args
        end = builder.and_(count, _I64(-_LANES))
        with cgutils.for_range_slice(builder, _I64(0), end, _I64(_LANES), _I64) as (at, _):
            value = builder.load(_at(builder, source, at, given, size), align=size)
            converted = getattr(builder, how)(value, made)
            builder.store(converted, _at(builder, target, at, made, made_size), align=made_size)
        return end

    return emit


@instruction
def _widen_chunks(context: Any, source: Any, target: Any, n: Any) -> tuple[Any, _EmitHalves]:
    return _ADDRESSES, _converting(_NARROW, 2, _WIDE, 4, "fpext")


@instruction
def _narrow_chunks(context: Any, source: Any, target: Any, n: Any) -> tuple[Any, _EmitHalves]:
    return _ADDRESSES, _converting(_WIDE, 4, _NARROW, 2, "fptrunc")


@bare
def _widen(source: Any, target: Any) -> Any:
    """Flat uint16 to flat float32; how many were done."""
    return _widen_chunks(source.ctypes.data, target.ctypes.data, np.int64(len(source)))


@bare
def _narrow(source: Any, target: Any) -> Any:
    """Flat float32 to flat uint16; how many were done."""
    return _narrow_chunks(source.ctypes.data, target.ctypes.data, np.int64(len(source)))


@cache
def converts() -> bool:
    """Whether this CPU converts by itself (F16C on x86, always on ARM of 64 bits)."""
    features = binding.get_host_cpu_features()
    return bool(features.get("f16c")) or "aarch64" in binding.get_process_triple()


def widen(values: HalfArray | FloatArray) -> FloatArray:
    """The values as float32, in memory of their own."""
    if values.dtype != np.float16 or not converts():
        return np.array(values, dtype=np.float32)
    source = np.ascontiguousarray(values).reshape(-1).view(np.uint16)
    wide = np.empty(values.shape, dtype=np.float32)
    flat = wide.reshape(-1)
    done = _widen(source, flat)
    flat[done:] = source[done:].view(np.float16)
    return wide


def narrow(values: FloatArray) -> HalfArray:
    """The values as float16; what is too large becomes infinite."""
    if not converts():
        with np.errstate(over="ignore"):
            return values.astype(np.float16)
    source = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
    halves = np.empty(values.shape, dtype=np.float16)
    flat = halves.reshape(-1)
    done = _narrow(source, flat.view(np.uint16))
    with np.errstate(over="ignore"):
        flat[done:] = source[done:]
    return halves
