"""Two input rows against one tile of output rows, in one instruction.

Two neighbours of a window share their noise words: each output row is read and written once for
both, and the long way from dot product to step is walked once. Both see the outputs as they were
before the step (a batch of two); everything else is in the order of the text.
"""

# The first argument of an instruction and some of its emitter are for numba alone.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from embedding.models.jit import instruction
from embedding.models.sigmoid import constant, emit_errors, emit_product
from embedding.models.simd import ADDRESS, TILE, Emit, chunks, fma, halve, load, store

_F32 = ir.FloatType()
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_QUAD = ir.VectorType(_F32, 4)
_LANES = 16  # lanes 0 to 5 the first input, 6 to 11 the second, 12 to 15 unused
_FAST = ("contract", "reassoc", "nsz")


def _pick(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, lanes: list[int]) -> ir.Value:
    mask = ir.Constant(ir.VectorType(_I32, len(lanes)), [_I32(lane) for lane in lanes])
    return builder.shuffle_vector(a, b, mask)


def _sums(builder: ir.IRBuilder, xs: list[ir.Value], outs: list[ir.Value], n: ir.Value) -> ir.Value:
    """<16 x float> of the dot products of both inputs with each output."""
    zero, wide = constant([0.0] * 4), ir.VectorType(_F32, 8)
    cells = [cgutils.alloca_once(builder, wide) for _ in range(2 * TILE)]
    for cell in cells:
        builder.store(ir.Constant(wide, None), cell)
    with chunks(builder, _I64(0), n, 8) as (at, end):
        _gather(builder, xs, outs, at, 8, cells)
    quads = [cgutils.alloca_once(builder, _QUAD) for _ in cells]
    for cell, quad in zip(cells, quads, strict=True):
        builder.store(halve(builder, builder.load(cell), 8), quad)
    with chunks(builder, end, n, 4) as (at, rest):
        _gather(builder, xs, outs, at, 4, quads)
    with chunks(builder, rest, n, 1) as (at, _):
        parts = [load(builder, x, at, 1) for x in xs]
        for k, out in enumerate(outs):
            row = load(builder, out, at, 1)
            for side, part in enumerate(parts):
                cell = quads[side * TILE + k]
                product = builder.insert_element(zero, builder.fmul(part, row), _I32(0))
                builder.store(builder.fadd(builder.load(cell), product), cell)
    values = [builder.load(cell) for cell in quads]
    fours = [_four(builder, values[at : at + 4]) for at in range(0, 2 * TILE, 4)]
    low = _pick(builder, fours[0], fours[1], list(range(8)))
    high = _pick(builder, fours[2], zero, list(range(8)))
    return _pick(builder, low, high, list(range(16)))


def _gather(
    builder: ir.IRBuilder,
    xs: list[ir.Value],
    outs: list[ir.Value],
    at: ir.Value,
    width: int,
    cells: list[ir.Value],
) -> None:
    parts = [load(builder, x, at, width) for x in xs]
    for k, out in enumerate(outs):
        row = load(builder, out, at, width)
        for side, part in enumerate(parts):
            cell = cells[side * TILE + k]
            builder.store(fma(builder, part, row, builder.load(cell)), cell)


def _four(builder: ir.IRBuilder, values: list[ir.Value]) -> ir.Value:
    """Sums of four vectors of four, as one vector (two levels of horizontal additions)."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [
            builder.fadd(
                _pick(builder, a, b, [0, 2, 4, 6]),
                _pick(builder, a, b, [1, 3, 5, 7]),
                flags=_FAST,
            )
            for a, b in pairs
        ]
    return values[0]


def _update(
    builder: ir.IRBuilder,
    xs: list[ir.Value],
    sinks: list[ir.Value],
    outs: list[ir.Value],
    steps: ir.Value,
    n: ir.Value,
) -> None:
    start: ir.Value = _I64(0)
    for width in (8, 4, 1):
        factors = [_spread(builder, steps, lane, width) for lane in range(2 * TILE)]
        with chunks(builder, start, n, width) as (at, end):
            parts = [load(builder, x, at, width) for x in xs]
            totals = [load(builder, sink, at, width) for sink in sinks]
            for k, out in enumerate(outs):
                row = load(builder, out, at, width)
                moved = row
                for side in (0, 1):
                    factor = factors[side * TILE + k]
                    totals[side] = fma(builder, factor, row, totals[side])
                    moved = fma(builder, factor, parts[side], moved)
                # In this order a row that is drawn twice gets both of its updates.
                store(builder, moved, out, at, width)
            for sink, total in zip(sinks, totals, strict=True):
                store(builder, total, sink, at, width)
        start = end


def _spread(builder: ir.IRBuilder, steps: ir.Value, lane: int, width: int) -> ir.Value:
    if width == 1:
        return builder.extract_element(steps, _I32(lane))
    return _pick(builder, steps, steps, [lane] * width)


@instruction
def learn_duo(
    typingctx: Any, xs: Any, sinks: Any, outs: Any, rates: Any, first: Any, n: Any
) -> Emit:
    """((x, y), sinks of both, six outputs, address of eight rates, is output 0 the target, n).

    Steps outputs in place, adds the steps of x and y to their sinks (which may be x and y
    themselves; x and y must be two rows), returns the likelihood before the step. An output with
    rate 0 takes no part.
    """
    two, six = types.UniTuple(ADDRESS, 2), types.UniTuple(ADDRESS, TILE)
    signature = types.float64(two, two, six, ADDRESS, types.boolean, types.int64)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        xs, sinks, outs = (cgutils.unpack_tuple(builder, args[i]) for i in range(3))
        eight = load(builder, args[3], _I64(0), 8)
        lanes = [*range(TILE), *range(TILE), *([8] * (_LANES - 2 * TILE))]
        rates = _pick(builder, eight, constant([0.0] * 8), lanes)
        signs = [[1.0 if lane in {0, TILE} else -1.0 for lane in range(_LANES)], [-1.0] * _LANES]
        target = builder.icmp_unsigned("!=", args[4], ir.Constant(args[4].type, 0))
        sign = builder.select(target, constant(signs[0]), constant(signs[1]))
        dots = _sums(builder, xs, outs, args[5])
        steps, p = emit_errors(builder, dots, sign, rates)
        _update(builder, xs, sinks, outs, steps, args[5])
        return emit_product(builder, p)

    return signature, emit
