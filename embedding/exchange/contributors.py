"""Hashed ids of those who used words that have no row yet: enough to count k of them, no more.

An id is four bytes of a keyed hash of the word and the author, so ids of two words do not show
whether the same author used both. The server draws the key at its start, sends it to nodes when
they connect, and never writes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from embedding.kernel.errors import RefusedError
from embedding.kernel.fields import IDS, Column, WordColumn
from embedding.kernel.records import IntArray

CONTRIBUTOR_ID_BYTES = 4


def contributor_id(key: bytes, word: str, whom: bytes) -> int:
    """The contributor id of `whom` (an author or a source) that used `word`."""
    payload = word.encode() + b"\0" + whom
    return int.from_bytes(
        hashlib.blake2b(payload, key=key, digest_size=CONTRIBUTOR_ID_BYTES).digest(), "big"
    )


@dataclass(frozen=True)
class Contributors:
    """Signs of the authors and of the sources of n words.

    authors      int64 [a], signs; those of word i end at author_ends[i] (int64 [n])
    sources      int64 [s], likewise with source_ends
    """

    authors: Annotated[IntArray, Column("i8", ("authors",))]
    author_ends: Annotated[IntArray, IDS]
    sources: Annotated[IntArray, Column("i8", ("sources",))]
    source_ends: Annotated[IntArray, IDS]

    def __post_init__(self) -> None:
        for signs, ends in ((self.authors, self.author_ends), (self.sources, self.source_ends)):
            last = int(ends[-1]) if len(ends) else 0
            bounds = np.diff(ends, prepend=0)
            if last != len(signs) or (len(ends) and int(bounds.min()) < 0):
                raise RefusedError("admit: the signs of authors and sources do not fit the words.")
        if len(self.author_ends) != len(self.source_ends):
            raise RefusedError("admit: the signs of authors and sources are of different words.")

    def __len__(self) -> int:
        return len(self.author_ends)

    @classmethod
    def of(cls, words: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Contributors:
        """From the signs of authors and of sources of each word."""
        columns: list[IntArray] = []
        for which in (0, 1):
            signs = [sign for word in words for sign in word[which]]
            columns.append(np.asarray(signs, dtype=np.int64))
            columns.append(np.cumsum([len(word[which]) for word in words], dtype=np.int64))
        return cls(*columns)

    def word(self, at: int) -> tuple[list[int], list[int]]:
        """Signs of the authors and of the sources of word `at`."""
        signs_of: list[list[int]] = []
        for signs, ends in ((self.authors, self.author_ends), (self.sources, self.source_ends)):
            signs_of.append(signs[ends[at - 1] if at else 0 : ends[at]].tolist())
        return signs_of[0], signs_of[1]


@dataclass(frozen=True)
class AdmissionRequest:
    """Words that a node asks rows for, with how often it read each, int64 [n]."""

    op: ClassVar = "admit"

    words: Annotated[Sequence[str], WordColumn("n")]
    counts: Annotated[IntArray, IDS]
    contributors: Contributors | None = None


@dataclass(frozen=True)
class Admitted:
    """Row ids of these words, int64 [n]; -1 where a word has none yet."""

    ids: Annotated[IntArray, IDS]
