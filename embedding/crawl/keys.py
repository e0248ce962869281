"""The number by which a document is named to the parameter server."""

from __future__ import annotations

import hashlib


def key_digest(key: str) -> int:
    """63 bits of BLAKE2b by which a document is named to the parameter server."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 1
