"""Which rows go by all-reduce: those that are touched so often that the server is the longer way.

Parallax (Kim et al. 2019, section 3) sends dense variables by all-reduce and sparse ones by the
parameter server. The rows of an embedding are both at once: a few thousand words are in nearly
every block, the others in few of them. So the choice is made row by row, from what was measured.
"""

from __future__ import annotations

import numpy as np

from embedding.kernel.records import IntArray

STAYS = 0.8
"""A row that goes by all-reduce does so until its density falls below this part of the threshold:
changing the way costs a pull and a broadcast."""
DENSE_SHARE = 0.95
"""Rows that are in so many blocks go by all-reduce whatever the number of nodes."""


def threshold(nodes: int, row_bytes: int) -> float:
    """Density (share of blocks that touch a row) from which on all-reduce is the better way.

    Each clock the server's connection carries nodes·density rows in each direction, `row_bytes` a
    column (2 or 4); a node's connection in the ring 2·(nodes-1)/nodes rows of 4. The busier of the
    two connections binds, so they are equal at density 8·(nodes-1) / (nodes²·row_bytes).
    """
    return min(DENSE_SHARE, 8 * (nodes - 1) / (nodes**2 * row_bytes)) if nodes > 1 else DENSE_SHARE


class Touches:
    """How many blocks touched each row since the last choice.

    counts  int32 [n], by row id
    """

    def __init__(self) -> None:
        self.counts = np.zeros(0, dtype=np.int32)

    def note(self, ids: IntArray) -> None:
        """A block touched these rows (distinct ids)."""
        if len(ids):
            self.reserve(int(ids.max()) + 1)
            self.counts[ids] += 1

    def reserve(self, rows: int) -> None:
        """Make room for ids below `rows`."""
        if rows > len(self.counts):
            room = max(rows, 2 * len(self.counts))
            self.counts = np.concatenate(
                [self.counts, np.zeros(room - len(self.counts), dtype=np.int32)]
            )

    def forget(self) -> None:
        """Begin to count again."""
        self.counts[:] = 0


def choose(touched: IntArray, blocks: int, least: float, dense: IntArray) -> IntArray:
    """Ids (int64, increasing) of the rows that go by all-reduce from now on.

    touched  int [n], blocks that touched each row, on all nodes
    blocks   blocks learnt meanwhile, on all nodes
    least    density from which on a row does
    dense    ids (increasing) that do so far
    """
    if not blocks:
        return dense
    need = np.full(len(touched), least * blocks)
    need[dense] *= STAYS
    found: IntArray = np.flatnonzero(touched >= np.maximum(need, 1.0)).astype(np.int64)
    return found
