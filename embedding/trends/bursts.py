"""When a word bursts: two states of a stream of batches (Kleinberg 2002, section 4).

In window t a share p of all d_t documents holds the word in the ordinary state, and a share s·p in
a burst. The states q_t that cost least are found by dynamic programming (Viterbi):

    Σ_t −ln Binomial(r_t; d_t, p_q) + γ ln T · [a burst begins at t]

and the weight of a burst is what the ordinary state would have cost more in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import IntArray
from embedding.trends.significance import TestArray

SCALING = 2.0
"""s: how many times as many documents hold the word in a burst."""
GAMMA = 1.0
"""γ: what it costs to enter a burst, in units of ln T."""


@dataclass(frozen=True)
class Burst:
    """Windows first to last (numbers, both included) in which a word burst, and its weight."""

    first: int
    last: int
    weight: float


def bursts(held: IntArray, read: IntArray) -> list[Burst]:
    """Bursts of one word, the earliest first.

    held, read  int64 [T]: documents that hold the word, and all documents, of each window
    """
    live = np.flatnonzero(read > 0)
    if len(live) < 2 or not held.sum():
        return []
    r, d = held[live].astype(np.float64), read[live].astype(np.float64)
    usual = r.sum() / d.sum()
    rates = np.clip([usual, min(SCALING * usual, 0.9999)], 1e-12, 0.9999)
    costs = -(r[:, None] * np.log(rates) + (d - r)[:, None] * np.log1p(-rates))
    states = _cheapest(costs, GAMMA * float(np.log(len(live))))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], states, [0]])))
    gain = costs[:, 0] - costs[:, 1]
    return [
        Burst(int(live[first]), int(live[end - 1]), float(gain[first:end].sum()))
        for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    ]


def _cheapest(costs: TestArray, entering: float) -> IntArray:
    """int64 [T]: states 0 or 1 that cost least in all; a word begins in the ordinary state."""
    total = np.array([costs[0, 0], costs[0, 1] + entering])
    came = np.zeros((len(costs), 2), dtype=np.int64)
    for at in range(1, len(costs)):
        step = total[:, None] + np.array([[0.0, entering], [0.0, 0.0]])
        came[at] = np.argmin(step, axis=0)
        total = step.min(axis=0) + costs[at]
    states = np.zeros(len(costs), dtype=np.int64)
    states[-1] = int(np.argmin(total))
    for at in range(len(costs) - 1, 0, -1):
        states[at - 1] = came[at, states[at]]
    return states
