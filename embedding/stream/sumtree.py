"""A sum tree: proportional draws and updates in O(log n), vectorised level by level.

Schaul et al. 2016, "Prioritized Experience Replay", appendix B.2.1. Node i has children 2i and
2i + 1; leaves start at `size`. Parents are recomputed from their children, never adjusted by a
difference, so rounding errors do not pile up.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray

Weights = npt.NDArray[np.float64]


class SumTree:
    """Non-negative weights of `n` leaves; all are 0 at first."""

    def __init__(self, n: int) -> None:
        self.size = 1 << max(0, n - 1).bit_length()
        self._nodes = np.zeros(2 * self.size, np.float64)

    @property
    def total(self) -> float:
        return float(self._nodes[1])

    @property
    def nbytes(self) -> int:
        return self._nodes.nbytes

    def get(self, leaves: IntArray) -> Weights:
        """Weights float64 [m] of `leaves` int64 [m]."""
        weights: Weights = self._nodes[leaves + self.size]
        return weights

    def set(self, leaves: IntArray, weights: Weights) -> None:
        """Set weights; of a leaf named twice the last counts. O(m log n)."""
        if not len(leaves):
            return
        at = leaves + self.size
        self._nodes[at] = weights
        while at[0] > 1:
            at = at >> 1
            if len(at) > 64:
                at = np.unique(at)
            self._nodes[at] = self._nodes[2 * at] + self._nodes[2 * at + 1]

    def find(self, masses: Weights) -> IntArray:
        """Leaf int64 [m] in which each cumulative mass float64 [m] of [0, total) falls."""
        at = np.ones(len(masses), np.int64)
        rest = np.array(masses, np.float64)
        while at.size and at[0] < self.size:
            left = 2 * at
            weight = self._nodes[left]
            # A right child of weight 0 is never entered, whatever rounding left in `rest`.
            right = (rest >= weight) & (self._nodes[left + 1] > 0)
            rest -= np.where(right, weight, 0.0)
            at = left + right
        return at - self.size
