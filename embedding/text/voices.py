"""Whose words a document holds, as a number that means nothing elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import numpy as np

from embedding.kernel.records import Document, IntArray

UnknownAuthors = Literal["one", "each"]


def voices(documents: Iterable[Document], unknown: UnknownAuthors = "one") -> IntArray:
    """int64 [n]: alike for documents of the same author of the same source.

    `Document.author` is a keyed pseudonym already. A document whose author is unknown has a number
    of its own, by its address: below 0, but with `unknown` = "each" like that of any author.
    """
    return np.fromiter((_voice(document, unknown) for document in documents), np.int64)


def contributors(voices: IntArray, source: str) -> IntArray:
    """int64 [n]: who wrote documents of a source, as far as it is known who did.

    All unknown authors of a source are one: nobody can say that they were several.
    """
    found: IntArray = np.where(voices < 0, -1 - _hashed(f"s{source}"), voices)
    return found


def _voice(document: Document, unknown: UnknownAuthors) -> int:
    known = bool(document.author) or unknown == "each"
    who = f"a{document.author}" if document.author else f"u{document.url}"
    value = _hashed(f"{document.source}\0{who}")
    return value if known else -1 - value


def _hashed(text: str) -> int:
    """63 bits."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
