"""In which part the leader adds what a group moved its rows by, while other groups moved them too.

As for nodes (`worker/learning`, ADR 6), with a group as the node and the time between two
exchanges as its block: a row that was trained k times is the part 1 - exp(-h) of the way to its
point of rest, h = c·k, and n groups that did so at the same time from the same rows push

    (1 - exp(-n·h)) / (n · (1 - exp(-h)))

of it each. A server knows neither the learning rate nor the pairs of a row, but how often a word
was read: k is the number of its occurrences, c is `group.curvature`. Without a barrier between
groups what meets is that of 2(n - 1) of them (ADR 10).
"""

from __future__ import annotations

import numpy as np

from embedding.kernel.records import FloatArray, TimeArray


def group_shares(occurrences: TimeArray, groups: int, curvature: float) -> FloatArray:
    """float32 [n]: the share of each row, given how often its word was read (float64 [n])."""
    n = max(groups, 2 * (groups - 1))
    if n <= 1 or not curvature:
        return np.ones(len(occurrences), dtype=np.float32)
    h = np.maximum(occurrences * curvature, 1e-9)
    found: FloatArray = (np.expm1(-n * h) / (n * np.expm1(-h))).astype(np.float32)
    return found
