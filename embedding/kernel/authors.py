"""Pseudonyms of authors, and the group that an author is in: it hangs on the name and on no key.

How words are used is added up by groups of authors (`worker/usage`), and p is found by dealing the
groups anew. A pseudonym is made with a key that may be drawn at each start: groups by pseudonyms
would be others each time, and so would the words that are barely called.
"""

from __future__ import annotations

import hashlib
import re

AUTHOR_GROUPS = 16
_GROUPED = re.compile(r".*#([0-9a-f])", re.DOTALL)


def group_of(author: str) -> int:
    """Below AUTHOR_GROUPS, by a name, or as `with_group` says it. So few hardly tell who it is."""
    stated = _GROUPED.fullmatch(author)
    if stated is not None:
        return int(stated[1], 16)
    name = author.strip().encode(errors="replace")
    return hashlib.blake2b(name, digest_size=1).digest()[0] % AUTHOR_GROUPS


def with_group(pseudonym: str, author: str) -> str:
    """A pseudonym, and the group of the author's name."""
    return f"{pseudonym}#{group_of(author):x}"


class Pseudonyms:
    """Opaque names of authors: keyed BLAKE2b, so that nobody can look names up without the key.

    The same author of one source always has the same pseudonym; across sources they differ.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key[:64]

    def of(self, source: str, author: str) -> str | None:
        """16 hex digits, or None when the author is unknown."""
        name = author.strip()
        if not name:
            return None
        text = f"{source}\0{name}".encode()
        return hashlib.blake2b(text, key=self._key, digest_size=8).hexdigest()

    def grouped(self, source: str, author: str) -> str | None:
        """The same with the group of the name, for the memory of a node: no file may hold it."""
        pseudonym = self.of(source, author)
        return pseudonym and with_group(pseudonym, author)
