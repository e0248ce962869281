"""Vector instructions of the kernels, written once for any dimension and any CPU.

numba's own loop vectoriser gives up on loops over seven rows that may overlap. These intrinsics
emit LLVM vectors of 16, 8, 4 and 1 float32 instead; LLVM maps them to AVX-512, AVX2, SSE or NEON.
Rows are named by their address, so one set of instructions serves tables and scratch rows alike.

A tile is one input row against TILE output rows: the target and its noise words.
"""

# The first argument of an instruction and some of its emitter are for numba alone.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from embedding.models.jit import instruction

TILE = 6
_F32 = ir.FloatType()
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_FAST = ("contract", "reassoc", "nsz")
_WIDTHS = (16, 8, 4)

ADDRESS = types.int64
_FLOAT = types.float32
SIX = types.UniTuple(types.float32, TILE)


def _vector(width: int) -> ir.Type:
    return ir.VectorType(_F32, width) if width > 1 else _F32


def _splat(builder: ir.IRBuilder, value: ir.Value, width: int) -> ir.Value:
    if width == 1:
        return value
    kind = _vector(width)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, _I32(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_I32, width), None))


def _pointer(builder: ir.IRBuilder, row: ir.Value, at: ir.Value, width: int) -> ir.Value:
    address = builder.add(row, builder.shl(at, _I64(2)))
    return builder.inttoptr(address, ir.PointerType(_vector(width)))


def load(builder: ir.IRBuilder, row: ir.Value, at: ir.Value, width: int) -> ir.Value:
    """`width` float32 of the row at address `row`, from index `at`."""
    return builder.load(_pointer(builder, row, at, width), align=4)


def store(builder: ir.IRBuilder, value: ir.Value, row: ir.Value, at: ir.Value, width: int) -> None:
    """Inverse of `load`."""
    builder.store(value, _pointer(builder, row, at, width), align=4)


def fma(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a·b + c, in one instruction where the CPU has it."""
    return builder.fadd(builder.fmul(a, b, flags=_FAST), c, flags=_FAST)


@contextmanager
def chunks(
    builder: ir.IRBuilder, start: ir.Value, n: ir.Value, width: int
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over whole chunks of `width` from `start`; gives (index, where the rest starts)."""
    end = builder.and_(n, _I64(-width))
    with cgutils.for_range_slice(builder, start, end, _I64(width), _I64) as (at, _):
        yield at, end


def halve(builder: ir.IRBuilder, value: ir.Value, width: int) -> ir.Value:
    """Upper half plus lower half."""
    half = width // 2
    picks = [
        ir.Constant(ir.VectorType(_I32, half), [_I32(i) for i in part])
        for part in (range(half), range(half, width))
    ]
    low, high = (builder.shuffle_vector(value, value, pick) for pick in picks)
    return builder.fadd(low, high, flags=_FAST)


def _emit_dots(
    builder: ir.IRBuilder, x: ir.Value, outs: list[ir.Value], n: ir.Value
) -> list[ir.Value]:
    sums: list[ir.Value] = []
    start: ir.Value = _I64(0)
    for width in (*_WIDTHS, 1):
        if width == 1:
            sums = [_total(builder, value) for value in sums]
        elif sums:
            sums = [halve(builder, value, width * 2) for value in sums]
        cells = [cgutils.alloca_once(builder, _vector(width)) for _ in outs]
        for k, cell in enumerate(cells):
            builder.store(sums[k] if sums else ir.Constant(_vector(width), None), cell)
        with chunks(builder, start, n, width) as (at, end):
            part = load(builder, x, at, width)
            for cell, out in zip(cells, outs, strict=True):
                row = load(builder, out, at, width)
                builder.store(fma(builder, part, row, builder.load(cell)), cell)
        start = end
        sums = [builder.load(cell) for cell in cells]
    return sums


def _total(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    pair = halve(builder, value, 4)
    left, right = (builder.extract_element(pair, _I32(i)) for i in (0, 1))
    return builder.fadd(left, right, flags=_FAST)


def _emit_update(
    builder: ir.IRBuilder,
    x: ir.Value,
    sink: ir.Value,
    outs: list[ir.Value],
    into: list[ir.Value],
    onto: list[ir.Value],
    n: ir.Value,
) -> None:
    start: ir.Value = _I64(0)
    for width in (*_WIDTHS, 1):
        inwards = [_splat(builder, value, width) for value in into]
        outwards = [_splat(builder, value, width) for value in onto]
        with chunks(builder, start, n, width) as (at, end):
            part = load(builder, x, at, width)
            total = load(builder, sink, at, width)
            for k, out in enumerate(outs):
                row = load(builder, out, at, width)
                total = fma(builder, inwards[k], row, total)
                # In this order a row that is drawn twice gets both of its updates.
                store(builder, fma(builder, outwards[k], part, row), out, at, width)
            store(builder, total, sink, at, width)
        start = end


def _unpack(builder: ir.IRBuilder, value: ir.Value) -> list[ir.Value]:
    return [builder.extract_value(value, i) for i in range(TILE)]


Emit = tuple[Any, Callable[..., Any]]


@instruction
def dots(typingctx: Any, x: Any, outs: Any, n: Any) -> Emit:
    """(x, (o0..o5), n) addresses and length → six dot products."""
    signature = SIX(ADDRESS, types.UniTuple(ADDRESS, TILE), types.int64)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        values = _emit_dots(builder, args[0], _unpack(builder, args[1]), args[2])
        return context.make_tuple(builder, sig.return_type, values)

    return signature, emit


@instruction
def dot(typingctx: Any, x: Any, y: Any, n: Any) -> Emit:
    """Dot product of `n` float32 at addresses x and y."""
    signature = _FLOAT(ADDRESS, ADDRESS, types.int64)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _emit_dots(builder, args[0], [args[1]], args[2])[0]

    return signature, emit


@instruction
def update(typingctx: Any, x: Any, sink: Any, outs: Any, into: Any, onto: Any, n: Any) -> Emit:
    """sink += Σ into[k]·o[k]; o[k] += onto[k]·x, each o[k] read before it is written.

    `sink` may be `x` itself: then every chunk of x is read before it is updated.
    """
    signature = types.void(ADDRESS, ADDRESS, types.UniTuple(ADDRESS, TILE), SIX, SIX, types.int64)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        outs, into, onto = (_unpack(builder, args[i]) for i in (2, 3, 4))
        _emit_update(builder, args[0], args[1], outs, into, onto, args[5])
        return context.get_dummy_value()

    return signature, emit


@instruction
def axpy(typingctx: Any, scale: Any, x: Any, y: Any, n: Any) -> Emit:
    """y += scale·x over `n` float32 at addresses x and y."""
    signature = types.void(_FLOAT, ADDRESS, ADDRESS, types.int64)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        scale, x, y, n = args
        start: ir.Value = _I64(0)
        for width in (*_WIDTHS, 1):
            factor = _splat(builder, scale, width)
            with chunks(builder, start, n, width) as (at, end):
                total = fma(
                    builder, factor, load(builder, x, at, width), load(builder, y, at, width)
                )
                store(builder, total, y, at, width)
            start = end
        return context.get_dummy_value()

    return signature, emit


@instruction
def clear(typingctx: Any, row: Any, n: Any) -> Emit:
    """Zeros to `n` float32 at address `row`."""
    signature = types.void(ADDRESS, types.int64)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start: ir.Value = _I64(0)
        for width in (*_WIDTHS, 1):
            with chunks(builder, start, args[1], width) as (at, end):
                store(builder, ir.Constant(_vector(width), None), args[0], at, width)
            start = end
        return context.get_dummy_value()

    return signature, emit


@instruction
def prefetch(typingctx: Any, row: Any, n: Any) -> Emit:
    """Ask for the cache lines of `n` float32 at address `row`, to be written soon."""
    signature = types.void(ADDRESS, types.int64)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row, n = args
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(ir.IntType(8)), _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        with cgutils.for_range_slice(builder, _I64(0), n, _I64(16), _I64) as (at, _):
            address = builder.add(row, builder.shl(at, _I64(2)))
            pointer = builder.inttoptr(address, ir.PointerType(ir.IntType(8)))
            builder.call(function, [pointer, _I32(1), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return signature, emit
