"""Archives of RSS and Atom feeds, and exports of blogs that are written so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from embedding.importing.encodings import Utf8Text, encoding_of
from embedding.importing.opening import opened
from embedding.importing.readers import READERS, RawRecords, ReaderTraits, ReadOptions, in_columns
from embedding.kernel.errors import InputError
from embedding.sources.markup import plain_text

_MOST = 1 << 27
"""Bytes of a file: it is read at once."""
_BLOCK = 1 << 20
_ENCODING = re.compile(
    rb"""^(\s*<\?xml[^>]{0,200}?)\s+encoding\s*=\s*(['"])[^'"]*\2""", re.IGNORECASE
)
_DEFECTS = (ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError)
"""What feedparser raises for some feeds instead of reading what it can."""
_TIMES = ("published", "created", "updated")


@READERS.register(
    "feed",
    ReaderTraits(
        noun="a feed",
        suffixes=(".rss", ".atom", ".xml", ".rdf"),
        begins=(b"<?xml", b"<rss", b"<feed"),
        named=True,
    ),
)
def read_feed_archive(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """Date, title, text, feed and author of each entry."""
    with opened(path) as file:
        encoding = encoding_of(file, path, options.encoding)
        text = Utf8Text(file, encoding.name)
        data = b""
        while more := text.read(_BLOCK):
            data += more
            if len(data) > _MOST:
                raise InputError(f"{path}: more than {_MOST >> 20} MB; split the archive.")
        feed = _parsed(data, path)
        name = _string(feed.feed.get("title")) or path.stem
        entries = enumerate(feed.entries)
        records = ((number, _record(entry, name)) for number, entry in entries if number >= since)
        yield from in_columns(records, lambda: 1.0, note=encoding.note)
        if file.cut or feed.bozo:
            number = max(len(feed.entries), since)
            yield from in_columns([(number, "the file ends in the middle of it")], lambda: 1.0)


def _parsed(data: bytes, path: Path) -> Any:
    import feedparser

    try:
        # The text is UTF-8 by now: an encoding in its prolog can only be wrong.
        feed = feedparser.parse(
            _ENCODING.sub(rb"\1", data, count=1),
            response_headers={"content-type": "application/xml; charset=utf-8"},
        )
    except _DEFECTS as error:
        raise InputError(f"{path}: the feed cannot be read.") from error
    if not feed.entries:
        raise InputError(f"{path}: no entry of RSS or Atom in it.")
    return feed


def _record(entry: Any, name: str) -> Mapping[str, str | None]:
    contents = entry.get("content") or ()
    texts = [_string(each.get("value")) for each in contents] + [_string(entry.get("summary"))]
    title = plain_text(_string(entry.get("title")))
    return {
        "date": next((entry[each] for each in _TIMES if entry.get(each)), None),
        "text": plain_text(next((each for each in texts if each.strip()), "")) or title or None,
        "title": title or None,
        "source": name,
        "author": _string(entry.get("author")) or None,
    }


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
