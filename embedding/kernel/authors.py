"""The group that an author is in, which hangs on the name and on no key.

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
