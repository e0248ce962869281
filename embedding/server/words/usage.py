"""How words are used, by window and source, in units of documents: what moved is judged by these.

When a window closes each node sends sums of unit vectors, one a document and word, of the window
and of the texts before it (`worker/usage/usage.py`). They are added up by window, source and time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import UNITS, ContextSums
from embedding.exchange.protocol import Push
from embedding.kernel.records import CodeArray, FloatArray, HalfArray, IntArray
from embedding.server.rows.memory import grown
from embedding.server.rows.slotmap import SlotMap

_FIRST = 256
_ROWS = 1024
"""Sums that are added at a time, so that what they pass through stays in a core's cache."""
_MOST = 60_000.0
"""Within float16."""
_COLUMNS = ("ids", "documents", "sums")
_UsageKey = tuple[int, str, int]
"""Window, source, and `time` of `SourceUsage`."""


@dataclass(frozen=True)
class SourceUsage:
    """The sums of one source in one window. Most words are in few of the UNITS, and a sum is held
    for each unit that has one.

    ids        int64 [n], row ids, increasing
    places     int64 [n], where each is in `documents` and `units`, which may have more rows
    documents  float32 [m, UNITS], how many documents use each word
    units      int32 [m, UNITS], which of `sums` is that of each unit
    sums       float16 [k, dim], of one unit vector a document; the first is 0, that of all units
               without documents
    time       0: texts of the window, by the rows of the model; 1: the same, 2: of the one before
               it, 3: of all older ones, 4 (BUSIEST): of the window's busiest authors, by vectors
               from the counts of all of them
    """

    source: str
    ids: IntArray
    places: IntArray
    documents: FloatArray
    units: CodeArray
    sums: HalfArray
    time: int = 0


class _Sums:
    """Sums of one source in one window: a place for each word, a row for each of its units."""

    def __init__(self, dim: int, first: int = _FIRST) -> None:
        """first: words that there is room for; memory is taken as they come."""
        self.places = SlotMap()
        self.size, self.rows = 0, 1
        self.documents = np.zeros((first, UNITS), dtype=np.float32)
        self.units = np.zeros((first, UNITS), dtype=np.int32)
        self.sums = np.zeros((first, dim), dtype=np.float16)

    def place(self, ids: IntArray, room: int) -> IntArray:
        """Places int64 [n] of distinct ids; -1 for those that there is no room for."""
        found = self.places.slots(ids)
        new = np.flatnonzero(found < 0)[: max(room, 0)]
        if len(new):
            found[new] = np.arange(self.size, self.size + len(new))
            self.places.put(found[new], ids[new])
            self.size += len(new)
            self.documents = grown(self.documents, self.size)
            self.units = grown(self.units, self.size)
        return found

    def rows_of(self, places: IntArray, unit: int) -> CodeArray:
        """Rows int32 [n] of `sums` for a unit of distinct places."""
        rows: CodeArray = self.units[places, unit]
        new = np.flatnonzero(rows == 0)
        if len(new):
            rows[new] = np.arange(self.rows, self.rows + len(new))
            self.units[places[new], unit] = rows[new]
            self.rows += len(new)
            self.sums = grown(self.sums, self.rows)
        return rows

    def add(self, rows: CodeArray, part: ContextSums, at: IntArray) -> None:
        """Add some words of a part (places int64 [n] in it) to their rows."""
        whole = widen(self.sums[rows]) + part.sums[at]
        self.sums[rows] = narrow(np.clip(whole, -_MOST, _MOST))

    def put(self, ids: IntArray, documents: FloatArray, values: HalfArray) -> None:
        """Take words that are not there yet, of a checkpoint (`UsageSums.content`)."""
        places = self.place(ids, len(ids))
        units = np.zeros(documents.shape, dtype=np.int32)
        units[documents > 0] = np.arange(self.rows, self.rows + len(values))
        self.documents[places], self.units[places] = documents, units
        self.sums = grown(self.sums, self.rows + len(values))
        self.sums[self.rows : self.rows + len(values)] = values
        self.rows += len(values)

    def held(self, key: _UsageKey) -> SourceUsage:
        _, source, time = key
        slots = self.places.used()
        ids = self.places.ids(slots)
        return SourceUsage(source, ids, slots, self.documents, self.units, self.sums, time)


class UsageSums:
    """Sums of all windows that are not cut yet. Not thread-safe: the server's lock guards it.

    dim    of a row
    wanted False keeps none
    limit  most words, summed over windows and sources, for each time: later ones are passed over
           and counted in `dropped`
    """

    def __init__(self, dim: int, *, wanted: bool, limit: int) -> None:
        self.dim, self.wanted, self.limit = dim, wanted, limit
        self.dropped = 0
        self._sums: dict[_UsageKey, _Sums] = {}
        # A window has about as many words as the one before, and growing is copying.
        self._usual: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return self._held(0)

    def _held(self, time: int) -> int:
        return sum(sums.size for key, sums in self._sums.items() if key[2] == time)

    def parts(self) -> list[_UsageKey]:
        """(window, source, time) of all sums, in order."""
        return sorted(self._sums)

    def describe(self) -> dict[str, int]:
        """As the status shows it."""
        before = sum(sums.size for sums in self._sums.values()) - len(self)
        units = UNITS if self.wanted else 0
        return {"held": len(self), "before": before, "dropped": self.dropped, "units": units}

    def learnt(self, push: Push, closed: Container[int]) -> None:
        """A push was taken; what belongs to closed windows is passed over."""
        for part in push.usage if self.wanted else ():
            if part.window not in closed:
                time, unit = divmod(part.part, UNITS)
                self._add((part.window, part.source, time), unit, part)

    def _add(self, key: _UsageKey, unit: int, part: ContextSums) -> None:
        """Add a part, which names each word once."""
        if not len(part.ids):
            return
        sums = self._of(key)
        places = sums.place(part.ids, self.limit - self._held(key[2]))
        fit = np.flatnonzero(places >= 0)
        self.dropped += len(part.ids) - len(fit)
        sums.documents[places[fit], unit] += part.documents[fit]
        rows = sums.rows_of(places[fit], unit)
        for start in range(0, len(fit), _ROWS):
            some = slice(start, start + _ROWS)
            sums.add(rows[some], part, fit[some])

    def _of(self, key: _UsageKey) -> _Sums:
        if key not in self._sums:
            usual = self._usual.get(key[1:], 0)
            self._sums[key] = _Sums(self.dim, max(_FIRST, usual + usual // 8))
        return self._sums[key]

    def held(self, starts: Sequence[int]) -> list[SourceUsage]:
        """The sums of some windows, by source: no copies, as a window that is cut takes no more."""
        return [
            self._sums[key].held(key)
            for key in self.parts()
            if key[0] in starts and self._sums[key].size
        ]

    def free(self, start: int) -> None:
        """Forget a window: its snapshot was cut."""
        for key in [key for key in self._sums if key[0] == start]:
            self._usual[key[1:]] = self._sums.pop(key).size

    def erase(self, ids: IntArray, source: str | None) -> None:
        """Forget how words were used (row ids int64 [n]), and all of a source."""
        for key in [key for key in self._sums if key[1] == source]:
            del self._sums[key]
        for sums in self._sums.values():
            places = sums.places.slots(ids)
            places = places[places >= 0]
            # In this order: whoever publishes them now reads documents first, and divides by them.
            sums.sums[sums.units[places]] = 0
            sums.documents[places] = 0

    def content(self) -> dict[str, npt.NDArray[Any]]:
        """Copies for a checkpoint, numbered as `keys`."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, key in enumerate(self.parts()):
            held = self._sums[key].held(key)
            arrays[f"usage.{number}.ids"] = held.ids
            documents = held.documents[held.places]
            arrays[f"usage.{number}.documents"] = documents
            # One a unit with documents, word after word.
            arrays[f"usage.{number}.sums"] = held.sums[held.units[held.places][documents > 0]]
        return arrays

    def restore(self, keys: Sequence[_UsageKey], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a checkpoint; older ones, and those of other columns, are passed over."""
        for number, key in enumerate(keys):
            names = [f"usage.{number}.{name}" for name in _COLUMNS]
            if not self.wanted or not all(name in arrays for name in names):
                continue
            ids, documents, values = (np.array(arrays[name]) for name in names)
            if values.shape[-1] != self.dim or documents.shape[1] != UNITS:
                continue
            if values.ndim == 3:  # of an older checkpoint: a sum for each unit
                values = values[documents > 0]
            self._of(key).put(ids, documents, values)
