"""How words are used, by window and source, in replicas: what shifts of meaning are judged by.

Each push brings sums of what stood around its words (`worker/usage.py`). They are added up by
window, source and word in a few replicas, a push to each in turn. The replicas hold different
texts, so their spread says how far two windows differ by chance alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.payload import BlockCounts, Usage
from embedding.exchange.protocol import Push
from embedding.records import FloatArray, IntArray
from embedding.server.rows.slotmap import SlotMap

_FIRST = 256
_COLUMNS = ("ids", "mentions", "pairs", "slopes")


@dataclass(frozen=True)
class SourceUsage:
    """The sums of one source in one window.

    ids       int64 [n], row ids, increasing; mentions int64 [n]
    pairs     float32 [n, replicas], N; slopes float32 [n, replicas, dim], g
    """

    source: str
    ids: IntArray
    mentions: IntArray
    pairs: FloatArray
    slopes: FloatArray


class _Sums:
    """Sums of one source in one window, a place for each word."""

    def __init__(self, dim: int, replicas: int) -> None:
        self.places = SlotMap()
        self.size = 0
        self.mentions = np.zeros(_FIRST, dtype=np.int64)
        self.pairs = np.zeros((_FIRST, replicas), dtype=np.float32)
        self.slopes = np.zeros((_FIRST, replicas, dim), dtype=np.float32)

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

    def copy(self, source: str, least: int) -> SourceUsage:
        slots = self.places.used()
        slots = slots[self.mentions[slots] >= least]
        return SourceUsage(
            source,
            self.places.ids(slots),
            self.mentions[slots],
            self.pairs[slots],
            self.slopes[slots],
        )


class UsageSums:
    """Sums of all windows that are not cut yet. Not thread-safe: the server's lock guards it.

    replicas  0 keeps none; limit  most words, summed over windows and sources: later ones are
    passed over and counted in `dropped`
    """

    def __init__(self, dim: int, *, replicas: int, limit: int) -> None:
        self.dim, self.replicas, self.limit = dim, replicas, limit
        self.dropped = 0
        self._sums: dict[tuple[int, str], _Sums] = {}

    def __len__(self) -> int:
        return sum(sums.size for sums in self._sums.values())

    def parts(self) -> list[tuple[int, str]]:
        """(window, source) of all sums, in order."""
        return sorted(self._sums)

    def describe(self) -> dict[str, int]:
        """As the status shows it."""
        return {"held": len(self), "dropped": self.dropped, "replicas": self.replicas}

    def learnt(self, push: Push, closed: Container[int]) -> None:
        """A push was taken; what belongs to closed windows is passed over."""
        if push.usage is None or not self.replicas:
            return
        replica = (push.sequence + zlib.crc32(push.node.encode())) % self.replicas
        start = 0
        for group in push.counts.groups:
            first, start = start, group.stop
            if group.window not in closed:
                rows = slice(*np.searchsorted(push.usage.at, [first, group.stop]).tolist())
                self._add((group.window, group.source), push.counts, push.usage, rows, replica)

    def _add(
        self, key: tuple[int, str], counts: BlockCounts, usage: Usage, rows: slice, replica: int
    ) -> None:
        at = usage.at[rows]
        if not len(at):
            return
        sums = self._sums.setdefault(key, _Sums(self.dim, self.replicas))
        places = sums.place(counts.ids[at], self.limit - len(self))
        fit = places >= 0
        self.dropped += int(len(at) - fit.sum())
        places = places[fit]
        sums.mentions[places] += counts.counts[at][fit]
        sums.pairs[places, replica] += usage.pairs[rows][fit]
        sums.slopes[places, replica] += usage.slopes[rows][fit]

    def held(self, starts: Sequence[int], least: int = 1) -> list[SourceUsage]:
        """Copies of the sums of some windows, of words with so many mentions, by source."""
        return [
            self._sums[window, source].copy(source, least)
            for window, source in self.parts()
            if window in starts and self._sums[window, source].size
        ]

    def free(self, start: int) -> None:
        """Forget a window: its snapshot was cut."""
        for key in [key for key in self._sums if key[0] == start]:
            del self._sums[key]

    def content(self) -> dict[str, npt.NDArray[Any]]:
        """Copies for a checkpoint, numbered as `keys`."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, key in enumerate(self.parts()):
            copy = self._sums[key].copy(key[1], 0)
            arrays |= {f"usage.{number}.{name}": getattr(copy, name) for name in _COLUMNS}
        return arrays

    def restore(
        self, keys: Sequence[tuple[int, str]], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Go on from a checkpoint; one with another number of replicas is passed over."""
        for number, (window, source) in enumerate(keys):
            ids, mentions, pairs, slopes = (
                np.array(arrays[f"usage.{number}.{name}"]) for name in _COLUMNS
            )
            if pairs.shape[1:] != (self.replicas,) or not self.replicas:
                continue
            sums = self._sums.setdefault((window, source), _Sums(self.dim, self.replicas))
            places = sums.place(ids, len(ids))
            sums.mentions[places], sums.pairs[places] = mentions, pairs
            sums.slopes[places] = slopes
