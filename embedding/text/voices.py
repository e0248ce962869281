"""Whose words a document holds, as a number that means nothing elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

from embedding.kernel.records import IntArray

UnknownAuthors = Literal["one", "each"]


def voices(source: str, authors: Sequence[str | None], keys: Sequence[str]) -> IntArray:
    """int64 [n]: alike for documents of the same author of a source.

    A document whose author is unknown has a number of its own, by its key: below 0.
    """
    pairs = zip(authors, keys, strict=True)
    found = (
        _hashed(f"{source}\0a{who}") if who else -1 - _hashed(f"{source}\0u{key}")
        for who, key in pairs
    )
    return np.fromiter(found, np.int64, len(keys))


def contributors(voices: IntArray, source: str, unknown: UnknownAuthors = "one") -> IntArray:
    """int64 [n]: who wrote documents of a source, as far as it is known who did.

    Nobody can say that unknown authors of a source were several: they are one, or each is another.
    """
    if unknown == "each":
        return voices
    found: IntArray = np.where(voices < 0, -1 - _hashed(f"s{source}"), voices)
    return found


def _hashed(text: str) -> int:
    """63 bits."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
