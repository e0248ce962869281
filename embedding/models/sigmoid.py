"""Sigmoids of a whole vector, exact to float32, with the likelihood that the loss is made of.

For an output with dot product f, sign s (+1 target, -1 noise) and z = s·f clipped to ±CLIP:
    p = σ(z)            probability of what was observed
    error = s·(1 - p)   derivative of log p by f
exp is Cody-Waite reduction and a degree 5 polynomial (Cephes expf): relative error below 2e-7.
"""

# The first argument of an instruction and some of its emitter are for numba alone.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from embedding.models.jit import instruction
from embedding.models.simd import SIX, TILE, Emit

CLIP = 30.0
_LANES = 8
_F32 = ir.FloatType()
_F64 = ir.DoubleType()
_I32 = ir.IntType(32)
_POLYNOMIAL = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
_CONTRACT = ("contract",)


def constant(values: Sequence[float]) -> ir.Constant:
    """A vector constant."""
    kind = ir.VectorType(_F32, len(values))
    return ir.Constant(kind, [ir.Constant(_F32, value) for value in values])


def _integers(value: int, lanes: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(_I32, lanes), [_I32(value)] * lanes)


def _pack(builder: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    vector: ir.Value = constant([0.0] * _LANES)
    for lane, value in enumerate(values):
        vector = builder.insert_element(vector, value, _I32(lane))
    return vector


def _exp(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """e^x for |x| <= 87."""
    kind, lanes = x.type, x.type.count

    def every(value: float) -> ir.Constant:
        return constant([value] * lanes)

    scaled = builder.fmul(x, every(1.44269504088896341))
    function = ir.FunctionType(kind, [kind])
    # Not the usual trick of adding 1.5 * 2**23: numba marks every sum as free to reassociate.
    nearest = cgutils.get_or_insert_function(builder.module, function, f"llvm.rint.v{lanes}f32")
    n = builder.call(nearest, [scaled])
    r = builder.fsub(x, builder.fmul(n, every(0.693359375)))
    r = builder.fadd(r, builder.fmul(n, every(2.12194440e-4)))
    y: ir.Value = every(_POLYNOMIAL[0])
    for factor in _POLYNOMIAL[1:]:
        product = builder.fmul(y, r, flags=_CONTRACT)
        y = builder.fadd(product, every(factor), flags=_CONTRACT)
    y = builder.fmul(builder.fmul(y, r), r, flags=_CONTRACT)
    y = builder.fadd(y, builder.fadd(r, every(1.0)), flags=_CONTRACT)
    exponent = builder.fptosi(n, ir.VectorType(_I32, lanes))
    power = builder.shl(builder.add(exponent, _integers(127, lanes)), _integers(23, lanes))
    return builder.fmul(y, builder.bitcast(power, kind))


def emit_errors(
    builder: ir.IRBuilder, f: ir.Value, sign: ir.Value, rates: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """(rates·errors, probabilities) of a vector of dot products; p is 1 where the rate is 0.

    A dot product that is not a number has error 0, so that the rows stay clean, and keeps its p,
    so that the loss shows it.
    """
    lanes = f.type.count
    zeros, ones = constant([0.0] * lanes), constant([1.0] * lanes)
    z = builder.fmul(sign, f)
    for limit, comparison in ((CLIP, ">"), (-CLIP, "<")):
        edge = constant([limit] * lanes)
        z = builder.select(builder.fcmp_ordered(comparison, z, edge), edge, z)
    e = _exp(builder, builder.fsub(zeros, z))
    p = builder.fdiv(ones, builder.fadd(ones, e))
    error = builder.fmul(builder.fmul(e, p), builder.fmul(sign, rates))
    error = builder.select(builder.fcmp_ordered("ord", z, z), error, zeros)
    active = builder.fcmp_ordered("!=", rates, zeros)
    return error, builder.select(active, p, ones)


def emit_product(builder: ir.IRBuilder, p: ir.Value) -> ir.Value:
    """Product of all lanes in double precision: one p may be as small as e^-CLIP."""
    product = builder.fpext(p, ir.VectorType(_F64, p.type.count))
    while product.type.count > 2:
        half = product.type.count // 2
        parts = [
            ir.Constant(ir.VectorType(_I32, half), [_I32(at + i) for i in range(half)])
            for at in (0, half)
        ]
        low, high = (builder.shuffle_vector(product, product, part) for part in parts)
        product = builder.fmul(low, high)
    left, right = (builder.extract_element(product, _I32(lane)) for lane in (0, 1))
    return builder.fmul(left, right)


@instruction
def errors(typingctx: Any, f: Any, rates: Any, first: Any) -> Emit:
    """(six dots, six rates, is output 0 the target) → (rate·error of each output, Π p)."""
    signature = types.Tuple((SIX, types.float64))(SIX, SIX, types.boolean)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        f = _pack(builder, cgutils.unpack_tuple(builder, args[0]))
        rates = _pack(builder, cgutils.unpack_tuple(builder, args[1]))
        noise = constant([-1.0] * _LANES)
        target = builder.icmp_unsigned("!=", args[2], ir.Constant(args[2].type, 0))
        sign = builder.select(target, constant([1.0] + [-1.0] * (_LANES - 1)), noise)
        error, p = emit_errors(builder, f, sign, rates)
        lanes = [builder.extract_element(error, _I32(i)) for i in range(TILE)]
        six = context.make_tuple(builder, SIX, lanes)
        return context.make_tuple(builder, sig.return_type, [six, emit_product(builder, p)])

    return signature, emit
