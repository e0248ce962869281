"""Character n-grams of words and the buckets they are hashed to.

Korean: syllable 1- to 4-grams and jamo 3- to 5-grams, every syllable being three jamo with a
sign of its own for an empty final (Park et al. 2018, "Subword-level Word Vector Representations
for Korean"). Other scripts: character 3- to 6-grams (Bojanowski et al. 2017). Words are put
between < and > first. Nothing depends on the process or the machine: the hash is BLAKE2b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

import numpy as np

from embedding.kernel.records import CodeArray, IntArray

SYLLABLES = (1, 4)
JAMO = (3, 5)
CHARACTERS = (3, 6)
_FIRST, _LAST = 0xAC00, 0xD7A3
_FINALS = 28
_MEDIALS = 21
_EMPTY = "\u11a7"  # the code point before the first final consonant: "no final"
_LONGEST = 64


def is_korean(word: str) -> bool:
    """Whether a word holds a Hangul syllable."""
    return any(_FIRST <= ord(letter) <= _LAST for letter in word)


def jamo(word: str) -> str:
    """Hangul syllables as initial, medial and final jamo (three each); the rest unchanged."""
    return "".join(_parts(letter) for letter in word)


def _parts(letter: str) -> str:
    index = ord(letter) - _FIRST
    if not 0 <= index <= _LAST - _FIRST:
        return letter
    initial, rest = divmod(index, _MEDIALS * _FINALS)
    medial, final = divmod(rest, _FINALS)
    last = chr(0x11A7 + final) if final else _EMPTY
    return chr(0x1100 + initial) + chr(0x1161 + medial) + last


def _grams(text: str, shortest: int, longest: int) -> Iterator[str]:
    for size in range(shortest, min(longest, len(text)) + 1):
        for start in range(len(text) - size + 1):
            gram = text[start : start + size]
            if gram not in ("<", ">"):
                yield gram


def ngrams(word: str) -> tuple[str, ...]:
    """Distinct n-grams in order of appearance; of very long words only the first letters count."""
    text = f"<{word[:_LONGEST]}>"
    if not is_korean(word):
        return tuple(dict.fromkeys(_grams(text, *CHARACTERS)))
    syllables = _grams(text, *SYLLABLES)
    letters = _grams(jamo(text), *JAMO)
    return tuple(dict.fromkeys([*syllables, *(f"\u0001{gram}" for gram in letters)]))


def gram_buckets(word: str, buckets: int) -> CodeArray:
    """int32, distinct, increasing and below `buckets`; empty for a word without n-grams."""
    grams = (gram.encode("utf-8", "surrogatepass") for gram in ngrams(word))
    digests = (blake2b(gram, digest_size=8).digest() for gram in grams)
    distinct = {int.from_bytes(digest, "little") % buckets for digest in digests}
    return np.asarray(sorted(distinct), dtype=np.int32)


_GramNames = Callable[[IntArray], Sequence[str]]
"""The words of some ids, int64 [n], in that order."""


class GramIndex:
    """The n-gram buckets of words with a row, by stable id: each word is hashed once.

    A node plans its blocks with it, a server composes vectors with it. Memory: 4 bytes an n-gram
    and about 200 bytes a word, so some 400 bytes for a Korean word of four or five syllables.
    Threads may share one: an entry is the same whoever adds it.
    """

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self._hashed: dict[int, CodeArray] = {}

    def __len__(self) -> int:
        return len(self._hashed)

    def note(self, ids: IntArray, words: Sequence[str]) -> None:
        """Hash those of `words` that have an id (not -1) and were not hashed yet."""
        for row, word in zip(ids.tolist(), words, strict=True):
            if row >= 0 and row not in self._hashed:
                self._hashed[row] = gram_buckets(word, self.buckets)

    def of(self, ids: IntArray, names: _GramNames) -> tuple[CodeArray, CodeArray]:
        """(buckets int32 [g], word after word; offsets int32 [n + 1]) of words without -1.

        names  is asked for the words of ids that were not hashed yet
        """
        get = self._hashed.get
        buckets = [get(row) for row in ids.tolist()]
        missing = [at for at, each in enumerate(buckets) if each is None]
        if missing:
            rows = ids[missing]
            for at, row, word in zip(missing, rows.tolist(), names(rows), strict=True):
                buckets[at] = self._hashed[row] = gram_buckets(word, self.buckets)
        known = [each for each in buckets if each is not None]
        offsets = np.zeros(len(ids) + 1, dtype=np.int32)
        np.cumsum([len(each) for each in known], out=offsets[1:])
        flat = np.concatenate(known) if known else np.empty(0, dtype=np.int32)
        return flat, offsets

    def forget(self, ids: IntArray) -> None:
        for row in ids.tolist():
            self._hashed.pop(row, None)

    def keep(self, alive: IntArray) -> None:
        """Drop all but these ids, once there are a quarter more of them."""
        if len(self._hashed) > 1.25 * len(alive) + 1024:
            known = self._hashed
            self._hashed = {row: known[row] for row in alive.tolist() if row in known}

    def clear(self) -> None:
        self._hashed = {}
