"""Near-duplicates: MinHash over three-word shingles, compared inside a sliding window.

A. Broder, "On the resemblance and containment of documents", 1997; the banding index is
datasketch's MinHashLSH.
"""

from __future__ import annotations

import zlib
from collections import deque

import numpy as np
from datasketch import MinHash, MinHashLSH

_PERMUTATIONS = 64
_WORDS = 3
_EMPTY = MinHash(_PERMUTATIONS, seed=1, hashfunc=zlib.crc32, scheme="affine32")


def signature(text: str) -> bytes:
    """MinHash of `text`: 64 little-endian uint32. Empty for texts without three words."""
    words = text.split()
    if len(words) < _WORDS:
        return b""
    shingles = {
        " ".join(words[at : at + _WORDS]).encode("utf-8", "surrogatepass")
        for at in range(len(words) - _WORDS + 1)
    }
    sketch = _EMPTY.copy()
    sketch.update_batch(sorted(shingles))
    return bytes(np.asarray(sketch.hashvalues, dtype="<u4").tobytes())


class NearDuplicates:
    """The latest `window` documents; older ones are forgotten, so memory is bounded."""

    def __init__(self, threshold: float, window: int) -> None:
        self._threshold = threshold
        self._window = window
        # Candidates are judged by their signatures, so bands are chosen to miss few.
        self._index = MinHashLSH(
            threshold=threshold, num_perm=_PERMUTATIONS, weights=(0.1, 0.9), prepickle=False
        )
        self._sketches: dict[int, MinHash] = {}
        self._keys: dict[int, str] = {}
        self._order: deque[int] = deque()
        self._next = 0

    def __len__(self) -> int:
        return len(self._order)

    def seen(self, key: str, sketch: bytes) -> str | None:
        """Key of an earlier document that is nearly the same; else `key` is remembered.

        A document never duplicates an earlier reading of its own key.
        """
        if self._window == 0 or not sketch:
            return None
        mine = _EMPTY.copy()
        mine.hashvalues = np.frombuffer(sketch, dtype="<u4").astype(mine.hashvalues.dtype)
        for candidate in self._index.query(mine):
            other = self._keys[candidate]
            if self._sketches[candidate].jaccard(mine) >= self._threshold:
                return None if other == key else other
        self._remember(key, mine)
        return None

    def _remember(self, key: str, sketch: MinHash) -> None:
        if len(self._order) >= self._window:
            oldest = self._order.popleft()
            self._index.remove(oldest)
            del self._sketches[oldest], self._keys[oldest]
        number = self._next
        self._next += 1
        self._index.insert(number, sketch)
        self._sketches[number] = sketch
        self._keys[number] = key
        self._order.append(number)
