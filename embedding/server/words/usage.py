"""How words are used, by window and source, in replicas: what shifts of meaning are judged by.

Each push brings sums of what stood around its words (`worker/usage.py`). They are added up by
window, source and word in a few replicas, a push to each in turn. The replicas hold different
texts, so their spread says how far two windows differ by chance alone. Beside them lie sums of
texts of windows before, read again by the tables that a window began with (`worker/rereading.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import Reread, Usage, said
from embedding.exchange.protocol import Push
from embedding.records import FloatArray, HalfArray, IntArray
from embedding.server.rows.slotmap import SlotMap

_FIRST = 256
_ROWS = 1024
"""Sums that are added at a time, so that what they pass through stays in a core's cache."""
_MOST = 60_000.0
"""Within float16."""
_COLUMNS = ("ids", "mentions", "pairs", "slopes")
Key = tuple[int, str, int]
"""Window, source, and `past` of `SourceUsage`."""


@dataclass(frozen=True)
class SourceUsage:
    """The sums of one source in one window.

    ids       int64 [n], row ids, increasing; mentions int64 [n]
    pairs     float32 [n, replicas], N; slopes [n, replicas, said(dim)], g: float32, of
              texts before the window float16
    past      0: texts of the window; 1, 2, …: texts before it, different ones in each
    """

    source: str
    ids: IntArray
    mentions: IntArray
    pairs: FloatArray
    slopes: FloatArray | HalfArray
    past: int = 0


class _Sums:
    """Sums of one source in one window, a place for each word.

    Texts before a window come in a few large parts, sent as float16, and are kept so; those of the
    window come in many small ones.
    """

    def __init__(self, columns: int, replicas: int, past: int, first: int = _FIRST) -> None:
        """first: words that there is room for; memory is taken as they come."""
        self.places = SlotMap()
        self.size = 0
        self.mentions = np.zeros(first, dtype=np.int64)
        self.pairs = np.zeros((first, replicas), dtype=np.float32)
        shape = (first, replicas, columns)
        self.slopes: FloatArray | HalfArray = np.zeros(shape, np.float32)
        if past:
            self.slopes = np.zeros(shape, np.float16)

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
        if self.size <= len(self.mentions):
            return
        for name in ("mentions", "pairs", "slopes"):
            old = getattr(self, name)
            grown = np.zeros((max(self.size, 2 * len(old)), *old.shape[1:]), dtype=old.dtype)
            grown[: len(old)] = old
            setattr(self, name, grown)

    def add(
        self, places: IntArray, replica: int, slopes: FloatArray | HalfArray, at: IntArray
    ) -> None:
        """Add some of `slopes` [n, columns] to a replica of their places."""
        whole = self.slopes[places[at], replica]
        if whole.dtype == np.float16:
            whole = narrow(np.clip(widen(whole) + slopes[at], -_MOST, _MOST))
        else:
            whole += slopes[at]
        self.slopes[places[at], replica] = whole

    def copy(self, key: Key, least: int) -> SourceUsage:
        _, source, past = key
        slots = self.places.used()
        slots = slots if past else slots[self.mentions[slots] >= least]
        return SourceUsage(
            source,
            self.places.ids(slots),
            self.mentions[slots],
            self.pairs[slots],
            self.slopes[slots],
            past,
        )


class UsageSums:
    """Sums of all windows that are not cut yet. Not thread-safe: the server's lock guards it.

    dim       of a row, of which a sum has `said`
    replicas  0 keeps none; limit  most words, summed over windows and sources, and for each `past`
    as many: later ones are passed over and counted in `dropped`
    """

    def __init__(self, dim: int, *, replicas: int, limit: int) -> None:
        self.columns, self.replicas, self.limit = said(dim), replicas, limit
        self.dropped = 0
        self._sums: dict[Key, _Sums] = {}
        # A window has about as many words as the one before, and growing is copying.
        self._usual: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return self._held(0)

    def _held(self, past: int) -> int:
        return sum(sums.size for key, sums in self._sums.items() if key[2] == past)

    def parts(self) -> list[Key]:
        """(window, source, past) of all sums, in order."""
        return sorted(self._sums)

    def describe(self) -> dict[str, int]:
        """As the status shows it."""
        before = sum(sums.size for sums in self._sums.values()) - len(self)
        return {
            "held": len(self),
            "before": before,
            "dropped": self.dropped,
            "replicas": self.replicas,
        }

    def learnt(self, push: Push, closed: Container[int]) -> None:
        """A push was taken; what belongs to closed windows is passed over."""
        if not self.replicas:
            return
        for part in push.reread:
            if part.window not in closed:
                past, replica = divmod(part.part, self.replicas)
                key = (part.window, part.source, 1 + past)
                self._add(key, part.ids, part, np.zeros(len(part.ids), np.int64), replica)
        if push.usage is None:
            return
        replica = (push.sequence + zlib.crc32(push.node.encode())) % self.replicas
        start = 0
        for group in push.counts.groups:
            first, start = start, group.stop
            if group.window not in closed:
                rows = slice(*np.searchsorted(push.usage.at, [first, group.stop]).tolist())
                used = push.usage
                own = Usage(used.at[rows], used.slopes[rows], used.pairs[rows])
                ids, mentions = push.counts.ids[own.at], push.counts.counts[own.at]
                self._add((group.window, group.source, 0), ids, own, mentions, replica)

    def _add(
        self, key: Key, ids: IntArray, told: Usage | Reread, mentions: IntArray, replica: int
    ) -> None:
        """What was told of words, each named once."""
        if not len(ids):
            return
        sums = self._of(key)
        places = sums.place(ids, self.limit - self._held(key[2]))
        fit = places >= 0
        self.dropped += int(len(ids) - fit.sum())
        sums.mentions[places[fit]] += mentions[fit]
        sums.pairs[places[fit], replica] += told.pairs[fit]
        held = np.flatnonzero(fit)
        for start in range(0, len(held), _ROWS):
            sums.add(places, replica, told.slopes, held[start : start + _ROWS])

    def _of(self, key: Key) -> _Sums:
        if key not in self._sums:
            usual = self._usual.get(key[1:], 0)
            first = max(_FIRST, usual + usual // 8)
            self._sums[key] = _Sums(self.columns, self.replicas, key[2], first)
        return self._sums[key]

    def held(self, starts: Sequence[int], least: int = 1) -> list[SourceUsage]:
        """Copies of the sums of some windows, of words with so many mentions, by source."""
        return [
            self._sums[key].copy(key, least)
            for key in self.parts()
            if key[0] in starts and self._sums[key].size
        ]

    def free(self, start: int) -> None:
        """Forget a window: its snapshot was cut."""
        for key in [key for key in self._sums if key[0] == start]:
            self._usual[key[1:]] = self._sums.pop(key).size

    def content(self) -> dict[str, npt.NDArray[Any]]:
        """Copies for a checkpoint, numbered as `keys`."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, key in enumerate(self.parts()):
            copy = self._sums[key].copy(key, 0)
            arrays |= {f"usage.{number}.{name}": getattr(copy, name) for name in _COLUMNS}
        return arrays

    def restore(self, keys: Sequence[Key], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a checkpoint; one with other replicas or columns is passed over."""
        for number, key in enumerate(keys):
            ids, mentions, pairs, slopes = (
                np.array(arrays[f"usage.{number}.{name}"]) for name in _COLUMNS
            )
            if slopes.shape[1:] != (self.replicas, self.columns) or not self.replicas:
                continue
            sums = self._of(key)
            places = sums.place(ids, len(ids))
            sums.mentions[places], sums.pairs[places] = mentions, pairs
            sums.slopes[places] = slopes
