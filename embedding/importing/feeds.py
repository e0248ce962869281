"""Archives of RSS and Atom feeds, and exports of blogs that are written so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from embedding.importing.encodings import Utf8Text, encoding_of
from embedding.importing.opening import opened, whole_of
from embedding.importing.readers import READERS, RawRecords, ReaderTraits, ReadOptions, in_columns
from embedding.kernel.errors import FetchError, InputError
from embedding.sources.feed import parse_feed, string_of
from embedding.sources.markup import plain_text

_MOST = 1 << 27
"""Bytes of a file: it is read at once."""
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
        too_long = f"{path}: more than {_MOST >> 20} MB; split the archive."
        data = whole_of(Utf8Text(file, encoding.name, "replace").read, _MOST, too_long)
        try:
            feed = parse_feed(data, str(path))
        except FetchError as error:
            raise InputError(str(error)) from error
        if not feed.entries:
            raise InputError(f"{path}: no entry of RSS or Atom in it.")
        name = string_of(feed.feed.get("title")) or path.stem
        entries = islice(enumerate(feed.entries), since, None)
        records = ((number, _record(entry, name)) for number, entry in entries)
        yield from in_columns(records, lambda: 1.0, note=encoding.note)
        if file.cut or feed.bozo:
            number = max(len(feed.entries), since)
            yield from in_columns([(number, "the file ends in the middle of it")], lambda: 1.0)


def _record(entry: Any, name: str) -> Mapping[str, str | None]:
    contents = entry.get("content") or ()
    texts = [*(string_of(part.get("value")) for part in contents), string_of(entry.get("summary"))]
    title = plain_text(string_of(entry.get("title")))
    return {
        "date": next((entry[name] for name in _TIMES if entry.get(name)), None),
        "text": plain_text(next((text for text in texts if text.strip()), "")) or title or None,
        "title": title or None,
        "source": name,
        "author": string_of(entry.get("author")) or None,
    }
