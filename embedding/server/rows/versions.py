"""When each row was changed last, and by whom, so that a row that a node has is not sent again.

A node that keeps rows adds its own deltas to them itself (`exchange/changes.py`): what counts for
it is the last change by anybody else. Two marks a row are enough to tell that for every node: the
last change and who made it, and the last change by another than that one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray, Table

_BoolArray = npt.NDArray[np.bool_]
_NOBODY = -1


class _Marks:
    """For each slot: last change, who made it, last change by another. 20 bytes a row."""

    def __init__(self) -> None:
        self.last: IntArray = np.zeros(0, dtype=np.int64)
        self.other: IntArray = np.zeros(0, dtype=np.int64)
        self.writer = np.zeros(0, dtype=np.int32)

    def reserve(self, slots: IntArray, clock: int) -> None:
        """Slots that were never marked count as changed by nobody that is known."""
        lacking = int(slots.max(initial=-1)) + 1 - len(self.last)
        if lacking > 0:
            lacking = max(lacking, len(self.last))
            self.last = np.concatenate([self.last, np.full(lacking, clock, dtype=np.int64)])
            self.other = np.concatenate([self.other, np.full(lacking, clock, dtype=np.int64)])
            nobody = np.full(lacking, _NOBODY, dtype=np.int32)
            self.writer = np.concatenate([self.writer, nobody])


class RowVersions:
    """Marks of all tables. Not thread-safe: the server's lock guards it.

    Nothing is kept before the first node asks (`start`), so that it costs nothing where no node
    keeps rows.

    clock  changes so far: sent to a node with the rows it gets
    """

    def __init__(self) -> None:
        self.clock = 0
        self._marks: dict[Table, _Marks] | None = None
        self._nodes: dict[str, int] = {}
        self._lost: dict[str, int] = {}
        self._writer = _NOBODY

    def start(self) -> int:
        """Keep marks from now on; the clock."""
        if self._marks is None:
            self.clock += 1
            self._marks = {table: _Marks() for table in Table}
        return self.clock

    def writing(self, node: str | None) -> None:
        """The next changes are this node's, which has them already; None: nobody has them."""
        self._writer = _NOBODY
        if node is not None:
            self._writer = self._nodes.setdefault(node, len(self._nodes))

    def changed(self, table: Table, slots: IntArray) -> None:
        """These rows (slots, none negative) change now."""
        if self._marks is None:
            return
        self.clock += 1
        marks = self._marks[table]
        marks.reserve(slots, self.clock)
        switched = slots[(marks.writer[slots] != self._writer) | (self._writer == _NOBODY)]
        marks.other[switched] = marks.last[switched]
        marks.last[slots] = self.clock
        marks.writer[slots] = self._writer

    def lost(self, nodes: Iterable[str]) -> None:
        """Pushes of these were dropped: the rows that they keep are not the server's."""
        self.clock += 1
        self._lost.update(dict.fromkeys(nodes, self.clock))

    def unknown(
        self, node: str, table: Table, slots: IntArray, since: IntArray | int
    ) -> _BoolArray:
        """Which rows the node lacks, bool [n].

        slots  int64 [n], negative for a word that was evicted
        since  int64 [n], or one for all: the clock of the rows that the node keeps, -1 where it
               keeps none
        """
        self.start()
        marks = (self._marks or {})[table]
        marks.reserve(slots, self.clock)
        clipped = np.maximum(slots, 0)
        own = marks.writer[clipped] == self._nodes.get(node, _NOBODY - 1)
        change = np.where(own, marks.other[clipped], marks.last[clipped])
        least = self._lost.get(node, 0)
        found: _BoolArray = (slots < 0) | (since < least) | (change > since) | (since < 0)
        return found
