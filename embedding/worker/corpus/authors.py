"""Who used a word in a window: what else the same author wrote with it is no new use.

What tells one use from another is `TokenBlock.voices`: alike for documents of the same author of
the same source. A document whose author is unknown is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray, TokenBlock

Marks = npt.NDArray[np.uint64]
_AuthorMask = npt.NDArray[np.bool_]

_SLOTS = 1 << 21
"""Pairs of author and word that are remembered: 32 MB."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Step of SplitMix64: 2^64 by the golden ratio."""


class Authors:
    """Which author used which word before, in which window and in which document.

    A table with one place for each value of a hash. A pair takes the place of another that was
    there: then an author may count twice, but a use by a new author is always counted. A document
    that is counted again counts as it did before.

    slots  places, a power of two
    """

    def __init__(self, slots: int = _SLOTS) -> None:
        self._last = np.uint64(slots - 1)
        self._pairs = np.zeros(slots, dtype=np.uint64)
        self._documents = np.zeros(slots, dtype=np.uint64)

    def first(
        self, block: TokenBlock, window: int, documents: IntArray, codes: IntArray
    ) -> _AuthorMask:
        """bool [n]: uses that count, one for each author, word and window.

        documents  int64 [n] of the block, increasing; codes int64 [n] of the block's words that
                   they hold, each pair once
        """
        used, place = np.unique(codes, return_inverse=True)
        words = name_marks([block.words[code] for code in used.tolist()])
        voices = block.voices.astype(np.uint64)[documents]
        pairs = mixed(mixed(voices + np.uint64(window % 2**63)) ^ words[place])
        holders = name_marks(block.keys)[documents]
        fresh = np.zeros(len(codes), dtype=bool)
        fresh[np.unique(pairs, return_index=True)[1]] = True
        at = (pairs & self._last).astype(np.int64)
        fresh &= (self._pairs[at] != pairs) | (self._documents[at] == holders)
        self._pairs[at[fresh]], self._documents[at[fresh]] = pairs[fresh], holders[fresh]
        return fresh


def name_marks(names: Sequence[str]) -> Marks:
    """uint64 [n], the same in every process."""
    sums = (crc32(name.encode(errors="replace")) for name in names)
    return mixed(np.fromiter(sums, np.uint64, len(names)))


def mixed(values: Marks) -> Marks:
    """A bijection that spreads all bits (SplitMix64; Steele, Lea and Flood 2014)."""
    values = values + _GOLDEN
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Marks = values ^ (values >> np.uint64(31))
    return mixed
