"""Keys of documents: which the frontier can hold, and the number that the server knows one by."""

from __future__ import annotations

import hashlib

LONGEST_KEY = 2_500
"""Bytes of a key. An index of PostgreSQL holds no more than 2,704 in an entry."""


def storable(key: str) -> bool:
    """Whether every database can hold it: it is not too long, and without NUL and half characters.

    No site needs others; one that names them would be stopped by an error of the database.
    """
    try:
        return len(key.encode()) <= LONGEST_KEY and "\0" not in key
    except UnicodeEncodeError:
        return False


def key_digest(key: str) -> int:
    """63 bits of BLAKE2b by which a document is named to the parameter server."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 1
