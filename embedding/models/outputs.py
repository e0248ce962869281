"""The output side that skip-gram, CBOW and fastText share: one hidden row against the target
and its noise words, by stochastic gradient or by row-wise AdaGrad.

Noise words are drawn from a stretch of the pool that is short enough to stay in the cache and
moves on with every centre: fresh noise for each pair, at the price of a few rows from memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from embedding.kernel.records import FloatArray, IntArray
from embedding.models.config import ModelConfig
from embedding.models.duo import learn_duo
from embedding.models.jit import bare
from embedding.models.sampling import below, next_state
from embedding.models.sigmoid import errors
from embedding.models.simd import TILE, axpy, clear, dot, dots, prefetch, update

EPSILON = np.float32(1e-8)
_NONE = np.float32(0.0)
_ONE = np.float32(1.0)


class KernelPlan(NamedTuple):
    """Settings of one call of a kernel, in the types it is compiled for."""

    rate: np.float32
    window: int
    negative: int
    shrink: bool
    span: int
    move: int

    @classmethod
    def of(cls, config: ModelConfig, learning_rate: float, pool: int) -> KernelPlan:
        return cls(
            np.float32(learning_rate),
            config.window,
            config.negative,
            config.shrink,
            min(config.span, pool),
            min(config.move, pool),
        )


class Scratch(NamedTuple):
    """What a kernel works in; it allocates nothing itself.

    rows   int64, whole tiles: the target and its noise words
    rates  float32 of each row when no noise word is the target, and two more for whole vectors
    spare  float32 [3, dim]
    """

    rows: IntArray
    rates: FloatArray
    spare: FloatArray

    @classmethod
    def of(cls, plan: KernelPlan, dim: int) -> Scratch:
        """Room for the outputs of `plan` at dimension `dim`."""
        size = (plan.negative + TILE) // TILE * TILE
        rates = np.zeros(size + 2, np.float32)
        rates[: plan.negative + 1] = plan.rate
        return cls(np.zeros(size, np.int64), rates, np.zeros((3, dim), np.float32))


@bare
def advance(cursor: int, plan: Any, pool: Any) -> int:
    """Where the stretch of the pool starts for the next centre."""
    cursor += plan.move
    return cursor - len(pool) if cursor >= len(pool) else cursor


@bare
def fetch_ahead(
    words: Any, ahead: int, inputs: int, base: int, stride: int, pool: Any, cursor: int, plan: Any
) -> None:
    """Bring into the cache what the next centres will read: an input, a target, fresh noise."""
    if ahead < len(words):
        prefetch(inputs + np.int64(words[ahead]) * stride, stride // 4)
    target = ahead - plan.window + 1
    if target < len(words):
        prefetch(base + np.int64(words[target]) * stride, stride // 4)
    for k in range(plan.move):
        place = cursor + plan.span + plan.move + k
        while place >= len(pool):
            place -= len(pool)
        prefetch(base + np.int64(pool[place]) * stride, stride // 4)


@bare
def draw_noise(rows: Any, target: int, pool: Any, cursor: int, plan: Any, state: int) -> Any:
    """Put the target and fresh noise words into `rows`; what is left over names the target."""
    rows[0] = target
    for k in range(1, plan.negative + 1):
        state = next_state(state)
        place = cursor + below(state, plan.span)
        if place >= len(pool):
            place -= len(pool)
        rows[k] = pool[place]
    for k in range(plan.negative + 1, len(rows)):
        rows[k] = target
    return state


@bare
def clashes(rows: Any, negative: int) -> bool:
    """Whether a noise word is the target itself."""
    same = 0
    for k in range(1, negative + 1):
        same += rows[k] == rows[0]
    return same > 0


@bare
def learn_both(x: int, y: int, spare: int, base: int, rows: Any, rates: int, n: int) -> Any:
    """Two different input rows against all outputs, in place; returns (loss, likelihood).

    One tile is stepped at once; more tiles gather the inputs' steps in two rows at `spare`.
    """
    if len(rows) == TILE:
        return 0.0, _duo(x, y, x, y, base, rows, 0, rates, n)
    first, second = spare, spare + n * 4
    clear(first, 2 * n)
    loss = 0.0
    for at in range(0, len(rows), TILE):
        loss -= np.log(_duo(x, y, first, second, base, rows, at, rates, n))
    axpy(_ONE, first, x, n)
    axpy(_ONE, second, y, n)
    return loss, 1.0


@bare
def _duo(
    x: int, y: int, first: int, second: int, base: int, rows: Any, at: int, rates: int, n: int
) -> Any:
    stride = n * 4
    outs = (
        base + rows[at] * stride,
        base + rows[at + 1] * stride,
        base + rows[at + 2] * stride,
        base + rows[at + 3] * stride,
        base + rows[at + 4] * stride,
        base + rows[at + 5] * stride,
    )
    return learn_duo((x, y), (first, second), outs, rates + at * 4, at == 0, n)


@bare
def _tile(base: int, stride: int, rows: Any, at: int, rate: float) -> Any:
    """Addresses and rates of rows[at : at + TILE]; noise that equals the target has rate 0."""
    target = rows[0]
    r0, r1, r2 = rows[at], rows[at + 1], rows[at + 2]
    r3, r4, r5 = rows[at + 3], rows[at + 4], rows[at + 5]
    outs = (
        base + r0 * stride,
        base + r1 * stride,
        base + r2 * stride,
        base + r3 * stride,
        base + r4 * stride,
        base + r5 * stride,
    )
    rates = (
        rate if at == 0 or r0 != target else _NONE,
        rate if r1 != target else _NONE,
        rate if r2 != target else _NONE,
        rate if r3 != target else _NONE,
        rate if r4 != target else _NONE,
        rate if r5 != target else _NONE,
    )
    return outs, rates


@bare
def learn_tile(
    x: int, sink: int, base: int, stride: int, rows: Any, at: int, n: int, rate: float
) -> Any:
    """One gradient step on the outputs of a tile; the hidden row's own step is added to `sink`.

    Returns the likelihood of what was observed, before the step.
    """
    outs, rates = _tile(base, stride, rows, at, rate)
    steps, likelihood = errors(dots(x, outs, n), rates, at == 0)
    update(x, sink, outs, steps, steps, n)
    return likelihood


@bare
def _learn_tile_adagrad(
    x: int, sink: int, base: int, stride: int, rows: Any, at: int, n: int, rate: float, squares: Any
) -> Any:
    """Like `learn_tile` with AdaGrad steps outwards and the plain gradient into `sink`."""
    outs, rates = _tile(base, stride, rows, at, _ONE)
    slopes, likelihood = errors(dots(x, outs, n), rates, at == 0)
    size = dot(x, x, n) / np.float32(n)
    steps = (
        slopes[0] * _adapt(squares, rows[at], slopes[0] * slopes[0] * size, rate),
        slopes[1] * _adapt(squares, rows[at + 1], slopes[1] * slopes[1] * size, rate),
        slopes[2] * _adapt(squares, rows[at + 2], slopes[2] * slopes[2] * size, rate),
        slopes[3] * _adapt(squares, rows[at + 3], slopes[3] * slopes[3] * size, rate),
        slopes[4] * _adapt(squares, rows[at + 4], slopes[4] * slopes[4] * size, rate),
        slopes[5] * _adapt(squares, rows[at + 5], slopes[5] * slopes[5] * size, rate),
    )
    update(x, sink, outs, slopes, steps, n)
    return likelihood


@bare
def _adapt(squares: Any, row: int, square: float, rate: float) -> Any:
    """Row-wise AdaGrad: add the mean squared gradient of a row; returns its step size now."""
    squares[row] += square
    return rate / (np.sqrt(squares[row]) + EPSILON)


@bare
def learn(
    x: int, sink: int, base: int, stride: int, rows: Any, n: int, rate: float, squares: Any
) -> float:
    """All outputs of one hidden row; returns the loss (nats) before the step.

    sink     += rate · ascent direction of the hidden row (SGD), or without the rate (AdaGrad)
    squares  AdaGrad accumulators of the output rows; empty: SGD
    """
    loss = 0.0
    for at in range(0, len(rows), TILE):
        if len(squares) == 0:
            loss -= np.log(learn_tile(x, sink, base, stride, rows, at, n, rate))
        else:
            loss -= np.log(_learn_tile_adagrad(x, sink, base, stride, rows, at, n, rate, squares))
    return loss


@bare
def descend(sink: int, x: int, row: int, n: int, rate: float, squares: Any) -> None:
    """Give an input row at address `x` the step that `learn` left in `sink`."""
    if len(squares) == 0:
        axpy(_ONE, sink, x, n)
    else:
        axpy(_adapt(squares, row, dot(sink, sink, n) / np.float32(n), rate), sink, x, n)
