"""The n-gram buckets of words with a row, by stable id: each word is hashed once.

A node plans its blocks with it, a server composes vectors with it. Memory: 4 bytes an n-gram and
about 200 bytes a word, so some 400 bytes for a Korean word of four or five syllables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from embedding.kernel.records import CodeArray, IntArray
from embedding.models.subwords import Subwords

_GramNames = Callable[[IntArray], Sequence[str]]
"""The words of some ids, int64 [n], in that order."""


class GramIndex:
    """Buckets by id. Threads may share one: an entry is the same whoever adds it."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self._hash = Subwords(buckets)
        self._held: dict[int, CodeArray] = {}

    def __len__(self) -> int:
        return len(self._held)

    def note(self, ids: IntArray, words: Sequence[str]) -> None:
        """Hash those of `words` that have an id (not -1) and are not held."""
        held = self._held
        for row, word in zip(ids.tolist(), words, strict=True):
            if row >= 0 and row not in held:
                held[row] = self._hashed(word)

    def of(self, ids: IntArray, names: _GramNames) -> tuple[CodeArray, CodeArray]:
        """(buckets int32 [g], word after word; offsets int32 [n + 1]) of words without -1.

        names  is asked for the words of ids that are not held
        """
        get = self._held.get
        found = [get(row) for row in ids.tolist()]
        missing = [at for at, each in enumerate(found) if each is None]
        if missing:
            rows = ids[missing]
            for at, row, word in zip(missing, rows.tolist(), names(rows), strict=True):
                found[at] = self._held[row] = self._hashed(word)
        known = [each for each in found if each is not None]
        offsets = np.zeros(len(ids) + 1, dtype=np.int32)
        np.cumsum([len(each) for each in known], out=offsets[1:])
        flat = np.concatenate(known) if known else np.empty(0, dtype=np.int32)
        return flat, offsets

    def forget(self, ids: IntArray) -> None:
        for row in ids.tolist():
            self._held.pop(row, None)

    def keep(self, alive: IntArray) -> None:
        """Drop all but these ids, once there are a quarter more of them."""
        if len(self._held) > 1.25 * len(alive) + 1024:
            wanted = set(alive.tolist())
            self._held = {row: held for row, held in self._held.items() if row in wanted}

    def clear(self) -> None:
        self._held = {}

    def _hashed(self, word: str) -> CodeArray:
        return self._hash.buckets(word).astype(np.int32)
