"""The examples that a kernel trains on, written out: who is the input, who the target, which
noise. The draws are the kernels' own, so that whoever reads them sees what a kernel saw.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from embedding.kernel.records import CodeArray, IntArray
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.jit import kernel
from embedding.models.outputs import KernelPlan, advance, clashes, draw_noise
from embedding.models.sampling import below, kept_tokens, next_state, seeded

_BAG = 1
_CENTRE = 2


@kernel()
def _put(rows: Any, negative: int, out: Any) -> None:
    out[0] = rows[0]
    for k in range(1, negative + 1):
        out[k] = rows[k] if rows[k] != rows[0] else -1


@kernel()
def _walk(
    words: Any,
    ends: Any,
    pool: Any,
    plan: Any,
    kind: int,
    seed: int,
    inputs: Any,
    outputs: Any,
    alone: Any,
    owners: Any,
) -> int:
    rows = np.zeros(plan.negative + 1, np.int64)
    state = next_state(seeded(seed))
    cursor = below(state, len(pool))
    made = 0
    for s in range(len(ends) - 1):
        low, high = ends[s], ends[s + 1]
        for centre in range(low, high):
            state = next_state(state)
            reach = plan.window - below(state, plan.window) if plan.shrink else plan.window
            cursor = advance(cursor, plan, pool)
            start = made
            first, last = max(low, centre - reach), min(high, centre + reach + 1)
            if kind == _BAG and last - first > 1:
                count = 0
                for at in range(first, last):
                    if at != centre:
                        inputs[made, count] = words[at]
                        count += 1
                state = draw_noise(rows, words[centre], pool, cursor, plan, state)
                _put(rows, plan.negative, outputs[made])
                made += 1
            place = 0
            for at in range(first, last):
                if kind == _BAG or at == centre:
                    continue
                target, given = (at, centre) if kind == _CENTRE else (centre, at)
                if kind == _CENTRE or place % 2 == 0:
                    state = draw_noise(rows, words[target], pool, cursor, plan, state)
                elif words[given] != inputs[made - 1, 0] and not clashes(rows, plan.negative):
                    alone[made] = False
                inputs[made, 0] = words[given]
                _put(rows, plan.negative, outputs[made])
                made += 1
                place += 1
            owners[start:made] = s
    return made


class Examples(NamedTuple):
    """What one block is trained on, in the order of training.

    inputs   int32 [e, m] rows of `vectors`, -1 where a bag is shorter; for fastText the centre's
             word row
    outputs  int32 [e, 1 + negative] rows of `contexts`: the target, then noise; -1 where noise
             equals the target
    starts   int64 [s + 1], where each step starts: a step takes its examples at once
    owners   int32 [e], sentence of each example
    """

    inputs: CodeArray
    outputs: CodeArray
    starts: IntArray
    owners: CodeArray


def examples(config: ModelConfig, block: LocalBlock, seed: int) -> Examples:
    """The examples of a block, with the draws that the kernels make."""
    words, ends = kept_tokens(block.tokens, block.sentences, block.keep, seed)
    bag = config.traits.bag
    longest = len(words) * (1 if bag else 2 * config.window)
    inputs = np.full((longest, 2 * config.window if bag else 1), -1, np.int32)
    outputs = np.empty((longest, 1 + config.negative), np.int32)
    alone = np.ones(longest, np.bool_)
    owners = np.zeros(longest, np.int32)
    made = 0
    if len(words) and len(block.pool):
        kind = _BAG if bag else _CENTRE if config.traits.has_subwords else 0
        plan = KernelPlan.of(config, 0.0, len(block.pool))
        seed_bits = np.uint64(seed)
        written = (inputs, outputs, alone, owners)
        made = int(_walk(words, ends, block.pool, plan, kind, seed_bits, *written))
    if config.optimiser is Optimiser.ADAGRAD:
        alone[:] = True
    starts = np.append(np.flatnonzero(alone[:made]), made)
    return Examples(inputs[:made], outputs[:made], starts, owners[:made])
