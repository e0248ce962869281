"""Whose words a document holds, as a number that means nothing elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from embedding.kernel.records import Document, IntArray


def voices(documents: Iterable[Document]) -> IntArray:
    """int64 [n]: alike for documents of the same author of the same source.

    `Document.author` is a keyed pseudonym already. A document whose author is unknown counts as
    one of its own, by its address.
    """
    return np.fromiter((_voice(document) for document in documents), np.int64)


def _voice(document: Document) -> int:
    who = f"a{document.author}" if document.author else f"u{document.url}"
    said = f"{document.source}\0{who}".encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big", signed=True)
