"""When each row was changed last, and by whom, so that a row that a node has is not sent again.

A node that keeps rows adds its own deltas to them itself (`rowcache.py`): what counts for
it is the last change by anybody else. Two marks a row are enough to tell that for every node: the
last change and who made it, and the last change by another than that one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray, Table
from embedding.server.rows.tables import Tables, Watcher

_BoolArray = npt.NDArray[np.bool_]
_NOBODY = -1
_MARKS = {"last": np.int64, "other": np.int64, "writer": np.int32}
"""Of each slot: last change, last change by another than its writer, and who that is."""


class RowVersions(Watcher):
    """Marks of all tables; seen as they change. Not thread-safe: the server's lock guards it.

    clock  changes so far: sent to a node with the rows it gets
    """

    def __init__(self) -> None:
        self.clock = 1
        self._marks: dict[Table, dict[str, npt.NDArray[Any]]] = {
            table: {name: np.zeros(0, dtype=kind) for name, kind in _MARKS.items()}
            for table in Table
        }
        self._nodes: dict[str, int] = {}
        self._lost: dict[str, int] = {}

    def save(self, table: Table, slots: IntArray, writer: str | None) -> None:
        """These rows (slots, none negative) change now."""
        by = _NOBODY if writer is None else self._nodes.setdefault(writer, len(self._nodes))
        self.clock += 1
        marks = self._of(table, slots)
        switched = slots[(marks["writer"][slots] != by) | (by == _NOBODY)]
        marks["other"][switched] = marks["last"][switched]
        marks["last"][slots] = self.clock
        marks["writer"][slots] = by

    def _of(self, table: Table, slots: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Marks by slot; slots that were never marked count as changed by nobody that is known."""
        marks = self._marks[table]
        known = len(marks["last"])
        more = max(int(slots.max(initial=0)) + 1 - known, 0)
        for name, kind in _MARKS.items() if more else ():
            first = _NOBODY if name == "writer" else self.clock
            fresh = np.full(max(more, known), first, dtype=kind)
            marks[name] = np.concatenate([marks[name], fresh])
        return marks

    def lost(self, nodes: Collection[str]) -> None:
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
        marks, clipped = self._of(table, slots), np.maximum(slots, 0)
        own = marks["writer"][clipped] == self._nodes.get(node, _NOBODY - 1)
        change = np.where(own, marks["other"][clipped], marks["last"][clipped])
        least = self._lost.get(node, 0)
        lacks: _BoolArray = (slots < 0) | (since < least) | (change > since) | (since < 0)
        return lacks


def versions_of(tables: Tables) -> RowVersions:
    """The marks of these tables. They are kept from the first time that anybody asks, so that they
    cost nothing where no node keeps rows.
    """
    for watcher in tables.watchers:
        if isinstance(watcher, RowVersions):
            return watcher
    versions = RowVersions()
    tables.watchers.append(versions)
    return versions
