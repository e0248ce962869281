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
from embedding.kernel.records import FloatArray, HalfArray, IntArray
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
    """The sums of one source in one window.

    ids        int64 [n], row ids, increasing
    places     int64 [n], where each is in the two others, which may have more rows
    documents  float32 [m, UNITS], how many documents use each word
    sums       float16 [m, UNITS, dim], of one unit vector a document
    time       0: texts of the window, by the rows of the model; 1: the same, 2: of the one before
               it, 3: of all older ones, 4 (BUSIEST): of the window's busiest authors, by vectors
               from the counts of all of them
    """

    source: str
    ids: IntArray
    places: IntArray
    documents: FloatArray
    sums: HalfArray
    time: int = 0


class _Sums:
    """Sums of one source in one window, a place for each word."""

    def __init__(self, dim: int, first: int = _FIRST) -> None:
        """first: words that there is room for; memory is taken as they come."""
        self.places = SlotMap()
        self.size = 0
        self.documents = np.zeros((first, UNITS), dtype=np.float32)
        self.sums = np.zeros((first, UNITS, dim), dtype=np.float16)

    def place(self, ids: IntArray, room: int) -> IntArray:
        """Places int64 [n] of distinct ids; -1 for those that there is no room for."""
        found = self.places.slots(ids)
        new = np.flatnonzero(found < 0)[: max(room, 0)]
        if len(new):
            found[new] = np.arange(self.size, self.size + len(new))
            self.places.put(found[new], ids[new])
            self.size += len(new)
            self._reserve()
        return found

    def _reserve(self) -> None:
        if self.size <= len(self.documents):
            return
        for name in ("documents", "sums"):
            old = getattr(self, name)
            grown = np.zeros((max(self.size, 2 * len(old)), *old.shape[1:]), dtype=old.dtype)
            grown[: len(old)] = old
            setattr(self, name, grown)

    def add(self, places: IntArray, unit: int, part: ContextSums, at: IntArray) -> None:
        """Add some words of a part to a unit of their places."""
        whole = widen(self.sums[places[at], unit]) + part.sums[at]
        self.sums[places[at], unit] = narrow(np.clip(whole, -_MOST, _MOST))

    def held(self, key: _UsageKey) -> SourceUsage:
        _, source, time = key
        slots = self.places.used()
        return SourceUsage(source, self.places.ids(slots), slots, self.documents, self.sums, time)


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
        for start in range(0, len(fit), _ROWS):
            sums.add(places, unit, part, fit[start : start + _ROWS])

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
            sums.sums[places] = 0
            sums.documents[places] = 0

    def content(self) -> dict[str, npt.NDArray[Any]]:
        """Copies for a checkpoint, numbered as `keys`."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, key in enumerate(self.parts()):
            held = self._sums[key].held(key)
            arrays[f"usage.{number}.ids"] = held.ids
            arrays[f"usage.{number}.documents"] = held.documents[held.places]
            arrays[f"usage.{number}.sums"] = held.sums[held.places]
        return arrays

    def restore(self, keys: Sequence[_UsageKey], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a checkpoint; older ones, and those of other columns, are passed over."""
        for number, key in enumerate(keys):
            names = [f"usage.{number}.{name}" for name in _COLUMNS]
            if not self.wanted or not all(name in arrays for name in names):
                continue
            ids, documents, values = (np.array(arrays[name]) for name in names)
            if values.shape[1:] != (UNITS, self.dim):
                continue
            sums = self._of(key)
            places = sums.place(ids, len(ids))
            sums.documents[places], sums.sums[places] = documents, values
