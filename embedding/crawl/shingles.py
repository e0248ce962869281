"""Near-duplicates: MinHash over three-word shingles, compared inside a sliding window.

A. Broder, "On the resemblance and containment of documents", 1997; texts that may be alike are
found by bands of their signatures (J. Leskovec et al., "Mining of Massive Datasets", 3.4).
"""

from __future__ import annotations

import zlib

import numpy as np

_PERMUTATIONS = 64
_WORDS = 3
_RANDOM = np.random.RandomState(1)
_FACTORS = _RANDOM.randint(0, 1 << 31, _PERMUTATIONS, np.uint32) * np.uint32(2) + np.uint32(1)
_SUMMANDS = _RANDOM.randint(0, 1 << 32, _PERMUTATIONS, np.uint32)


def signature(text: str) -> bytes:
    """MinHash of `text`: 64 little-endian uint32. Empty for texts without three words."""
    words = text.split()
    if len(words) < _WORDS:
        return b""
    shingles = {" ".join(words[i : i + _WORDS]) for i in range(len(words) - _WORDS + 1)}
    hashes = (zlib.crc32(shingle.encode("utf-8", "surrogatepass")) for shingle in shingles)
    mixed = np.fromiter(hashes, np.uint32, len(shingles))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):  # MurmurHash3's end
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    return bytes((mixed[:, None] * _FACTORS + _SUMMANDS).min(axis=0).astype("<u4").tobytes())


def similar(left: bytes, right: bytes) -> float:
    """Jaccard similarity that two MinHash signatures estimate (A. Broder 1997)."""
    if not left or len(left) != len(right):
        return 0.0
    return float((np.frombuffer(left, "<u4") == np.frombuffer(right, "<u4")).mean())


class NearDuplicates:
    """The latest `window` documents; older ones are forgotten, so memory is bounded."""

    def __init__(self, threshold: float, window: int) -> None:
        self._threshold = threshold
        self._window = window
        # Values of a band: as many as find what is just alike enough at least four times of five.
        rows = range(1, _PERMUTATIONS + 1)
        share = {n: 1 - (1 - threshold**n) ** (_PERMUTATIONS // n) for n in rows}
        self._size = 4 * max((n for n in rows if share[n] >= 0.8), default=1)
        self._index: dict[tuple[int, bytes], list[int]] = {}
        self._known: dict[int, tuple[str, bytes]] = {}
        self._next = 0

    def seen(self, key: str, sketch: bytes) -> str | None:
        """Key of an earlier document that is nearly the same; else `key` is remembered.

        A document never duplicates an earlier reading of its own key.
        """
        if self._window == 0 or not sketch:
            return None
        alike = {number for band in self._parts(sketch) for number in self._index.get(band, ())}
        for number in sorted(alike):
            other, theirs = self._known[number]
            if similar(sketch, theirs) >= self._threshold:
                return None if other == key else other
        if len(self._known) >= self._window:
            for band in self._parts(self._known.pop(self._next - self._window)[1]):
                del self._index[band][0]
                if not self._index[band]:
                    del self._index[band]
        for band in self._parts(sketch):
            self._index.setdefault(band, []).append(self._next)
        self._known[self._next] = key, sketch
        self._next += 1
        return None

    def _parts(self, sketch: bytes) -> list[tuple[int, bytes]]:
        begins = range(0, len(sketch) - self._size + 1, self._size)
        return [(begin, sketch[begin : begin + self._size]) for begin in begins]
