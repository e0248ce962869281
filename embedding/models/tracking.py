"""Importance weights and figures of each sentence, beside a kernel that knows only pairs.

A kernel calls `enter` before a sentence and `leave` after it, and neither when `track` is None:
numba then compiles a kernel without them, so that whoever asks for nothing pays nothing.

The gradient of a sentence is measured as the way it moved the rows, divided by its learning rate.
That is exact up to terms of the order of the learning rate (the pairs of a sentence are learnt in
turn, not at once), costs a copy of the rows that the sentence may touch instead of its gradients
row by row, and counts what the pairs of a sentence have in common, which a sum of the norms of
its pairs would not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import CodeArray, FloatArray
from embedding.models.base import BlockLoss, LocalBlock, Track
from embedding.models.jit import bare
from embedding.models.outputs import KernelPlan


class Memory(NamedTuple):
    """Rows of one table as they were when the sentence started.

    table   float32 [rows, dim], as it is trained
    places  int32 [rows], 1 + place of a remembered row, 0 for any other
    rows    int32 [k], which rows are remembered; before float32 [k, dim], what they held
    """

    table: FloatArray
    places: CodeArray
    rows: CodeArray
    before: FloatArray

    @classmethod
    def of(cls, table: FloatArray, most: int) -> Memory:
        """Room for `most` rows of `table`."""
        k = min(most, len(table))
        before = np.empty((k, table.shape[1]), np.float32)
        return cls(table, np.zeros(len(table), np.int32), np.empty(k, np.int32), before)


class Tracking(NamedTuple):
    """What goes into a kernel and comes out of it for m sentences.

    weights    float32 [m], factor of the learning rate; empty: 1
    losses     float32 [m], summed loss in nats; units int32 [m], pairs it was summed over
    gradients  float32 [m], see above; empty: not measured
    inputs, outputs   rows before the sentence; empty without gradients
    subwords, offsets n-gram rows of the words (fastText); no offsets: words only
    """

    weights: FloatArray
    losses: npt.NDArray[np.float64]
    units: CodeArray
    gradients: FloatArray
    inputs: Memory
    outputs: Memory
    subwords: CodeArray
    offsets: CodeArray

    @classmethod
    def of(
        cls,
        block: LocalBlock,
        ends: CodeArray,
        plan: KernelPlan,
        tables: tuple[FloatArray, FloatArray],
        grams: tuple[CodeArray, CodeArray] | None = None,
    ) -> Tracking | None:
        """What `block` asks for, None when it asks for nothing; `ends` are those of kept words."""
        if block.weights is None and block.track is Track.NONE:
            return None
        m = len(ends) - 1
        none = np.zeros(0, np.int32)
        subwords, offsets = grams or (none, none)
        measured = block.track is Track.GRADIENT
        most = (0, 0)
        if measured:
            longest = int(np.diff(ends).max(initial=0))
            widest = 1 + int(np.diff(offsets).max(initial=0))
            most = (longest * widest, longest * (1 + plan.move) + plan.span)
        return cls(
            weights=np.zeros(0, np.float32) if block.weights is None else block.weights,
            losses=np.zeros(m, np.float64),
            units=np.zeros(m, np.int32),
            gradients=np.zeros(m if measured else 0, np.float32),
            inputs=Memory.of(tables[0] if measured else tables[0][:0], most[0]),
            outputs=Memory.of(tables[1] if measured else tables[1][:0], most[1]),
            subwords=subwords,
            offsets=offsets,
        )


def result(
    loss: float, units: int, words: int, track: Track, tracking: Tracking | None
) -> BlockLoss:
    """The loss of a block with the figures of its sentences that were asked for."""
    if tracking is None or track is Track.NONE:
        return BlockLoss(float(loss), int(units), words)
    return BlockLoss(
        float(loss),
        int(units),
        words,
        sentence_loss=(tracking.losses / np.maximum(tracking.units, 1)).astype(np.float32),
        sentence_pairs=tracking.units,
        sentence_gradient=tracking.gradients if track is Track.GRADIENT else None,
    )


def nothing(block: LocalBlock, words: int) -> BlockLoss:
    """The result for a block that holds nothing to train on."""
    m = len(block.sentences) - 1
    asked = block.track is not Track.NONE
    return BlockLoss(
        0.0,
        0,
        words,
        sentence_loss=np.zeros(m, np.float32) if asked else None,
        sentence_pairs=np.zeros(m, np.int32) if asked else None,
        sentence_gradient=np.zeros(m, np.float32) if block.track is Track.GRADIENT else None,
    )


@bare
def _remember(row: int, count: int, memory: Any) -> int:
    """Keep a copy of a row, once; `count` rows are kept already, returns how many are now."""
    if memory.places[row] > 0:
        return count
    memory.rows[count] = row
    for i in range(memory.table.shape[1]):
        memory.before[count, i] = memory.table[row, i]
    memory.places[row] = count + 1
    return count + 1


@bare
def enter(
    s: int,
    low: int,
    high: int,
    words: Any,
    pool: Any,
    cursor: int,
    plan: Any,
    scratch: Any,
    track: Any,
) -> Any:
    """Before sentence `s`: its plan (rates too), and how many rows of each table it may touch.

    The rows of a sentence are its words and every place of the pool that its stretches cover.
    """
    rate = plan.rate * track.weights[s] if len(track.weights) > 0 else plan.rate
    for k in range(plan.negative + 1):
        scratch.rates[k] = rate
    step = KernelPlan(rate, plan.window, plan.negative, plan.shrink, plan.span, plan.move)
    inside, outside = 0, 0
    if len(track.gradients) == 0 or high - low < 2:
        return step, inside, outside
    for at in range(low, high):
        word = np.int64(words[at])
        inside = _remember(word, inside, track.inputs)
        outside = _remember(word, outside, track.outputs)
        if len(track.offsets) > 0:
            for gram in range(track.offsets[word], track.offsets[word + 1]):
                row = np.int64(track.subwords[gram])
                inside = _remember(row, inside, track.inputs)
    place = cursor
    for at in range(plan.span + plan.move * (high - low)):
        place = place + 1 if place + 1 < len(pool) else 0
        outside = _remember(np.int64(pool[place]), outside, track.outputs)
        if at + 1 >= len(pool):
            break
    return step, inside, outside


@bare
def _moved(count: int, memory: Any) -> float:
    """Sum of the squared ways of `count` remembered rows, which are forgotten."""
    total = 0.0
    for k in range(count):
        row = np.int64(memory.rows[k])
        memory.places[row] = 0
        way: Any = np.float32(0.0)
        for i in range(memory.table.shape[1]):
            step = memory.table[row, i] - memory.before[k, i]
            way += step * step
        total += way
    return total


@bare
def leave(s: int, loss: float, units: int, touched: Any, rate: float, track: Any) -> None:
    """After sentence `s`: its summed loss and pairs; `touched`: how many rows of each table are
    compared."""
    track.losses[s] = loss
    track.units[s] = units
    if len(track.gradients) == 0:
        return
    way = _moved(touched[0], track.inputs)
    way += _moved(touched[1], track.outputs)
    track.gradients[s] = np.sqrt(way) / rate if rate > 0 else 0.0
