"""Keys of documents: which the frontier can hold, and the number that the server knows one by."""

from __future__ import annotations

import hashlib

from embedding.crawl.addresses import canonical, same_site

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


def item_key(key: str, source_url: str) -> str:
    """The key of an item that the listing of a source held, as a post or a comment.

    An address of another site is not the source's to give away: whoever names it first would have
    it, and the page there would never be read. An item of such a page keeps the page in its key,
    and any other is one of the source's own address.
    """
    key = canonical(key)
    if not key.startswith(("http://", "https://")) or same_site(key, source_url):
        return key
    own = hashlib.blake2b(
        f"{source_url}\0{key}".encode(errors="replace"), digest_size=12
    ).hexdigest()
    page, mark, _ = key.partition("#")
    return f"{page}#comment-{own}" if mark else f"{source_url.partition('#')[0]}#item-{own}"


def key_digest(key: str) -> int:
    """63 bits of BLAKE2b by which a document is named to the parameter server."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 1
