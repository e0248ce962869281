"""WARC: pages as crawlers and web archives keep them, read as the crawler reads them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from embedding.importing.opening import DAMAGED, UnpackedFile, opened
from embedding.importing.readers import (
    READERS,
    RawRecords,
    ReaderTraits,
    ReadOptions,
    Record,
    in_columns,
)
from embedding.kernel.errors import FetchError, InputError
from embedding.sources.base import FetchedPage

if TYPE_CHECKING:
    from embedding.crawl.extractor import Extractor

_TEXT = "text/plain"
_TOGETHER = 64
"""Pages that are read before the first of them is handed over."""
_LARGEST = 8 * 1024 * 1024
"""Bytes of a page, as for the crawler."""
_LIMIT_S = 20.0
_MOST_CHARACTERS = 50_000
_LEAST_CHARACTERS = 20
_Page = tuple[int, FetchedPage | str, str]
"""Number, page or why there is none, time of the crawl."""


@READERS.register(
    "warc",
    ReaderTraits(
        noun="a web archive",
        suffixes=(".warc", ".arc", ".wet"),
        begins=(b"WARC/", b"filedesc://"),
        named=True,
    ),
)
def read_warc(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """Date, title, text, host and authors of each page that was answered.

    A page without a date of its own has that of the crawl. Pictures and errors are left out.
    """
    from embedding.crawl.extractor import Extractor  # trafilatura takes its time

    with opened(path) as file, asyncio.Runner() as runner:
        extractor = Extractor(max(1, (os.cpu_count() or 2) - 1), _LIMIT_S, _MOST_CHARACTERS)
        try:
            records = _records(_pages(file, path, since), runner, extractor, options.timezone)
            yield from in_columns(records, lambda: file.done, _TOGETHER)
        finally:
            runner.run(extractor.close())


def _pages(file: UnpackedFile, path: Path, since: int) -> Iterator[_Page]:
    """The answers in an archive from number `since` on."""
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    number = 0
    try:
        for record in ArchiveIterator(file, arc2warc=True):
            if record.rec_type not in ("response", "resource", "conversion"):
                continue
            if number >= since:
                when = record.rec_headers.get_header("WARC-Date") or ""
                yield number, _page(record), when
            number += 1
    except (ArchiveLoadFailed, *DAMAGED) as error:
        if not number:
            raise InputError(f"{path}: not a WARC file ({error}).") from error
        yield max(number, since), f"the archive cannot be read from here on ({error})", ""


def _page(record: Any) -> FetchedPage | str:
    from warcio.bufferedreaders import ChunkedDataException, ChunkedDataReader

    from embedding.crawl.unpack import Unpacker

    url = record.rec_headers.get_header("WARC-Target-URI") or ""
    headers = record.http_headers if record.rec_type == "response" else None
    kind = (headers or record.rec_headers).get_header("Content-Type") or "text/html"
    status = headers.get_statuscode() if headers is not None else "200"
    if status != "200":
        return f"an answer with status {status}"
    pages = ("text/html", "application/xhtml") if record.rec_type != "conversion" else (_TEXT,)
    if not kind.lower().startswith(pages):
        return f"{kind.partition(';')[0].strip()[:60]}, no page"
    encoding = headers.get_header("Content-Encoding") or "" if headers is not None else ""
    transfer = headers.get_header("Transfer-Encoding") if headers is not None else ""
    chunked = "chunked" in (transfer or "").lower()
    try:
        unpacker = Unpacker(encoding, _LARGEST)
        stream = ChunkedDataReader(record.raw_stream) if chunked else record.raw_stream
        while data := stream.read(1 << 16):
            unpacker.feed(data)
        if getattr(record.raw_stream, "limit", 0):
            return "the archive ends in the middle of it"
        body = unpacker.body()
    except FetchError as error:
        return f"a page that cannot be read ({error.reason})"
    except (ChunkedDataException, *DAMAGED):
        return "a page that cannot be unpacked"
    return FetchedPage(url, "", body, {"content-type": kind})


def _records(
    pages: Iterator[_Page], runner: asyncio.Runner, extractor: Extractor, zone: str
) -> Iterator[tuple[int, Record]]:
    async def read(page: FetchedPage | str, when: str) -> Record:
        if isinstance(page, str):
            return page
        site = (urlsplit(page.url).hostname or "").removeprefix("www.") or None
        if page.headers["content-type"].lower().startswith(_TEXT):
            # The words of a page, as WET files have them.
            return {"date": when, "text": page.body.decode(errors="replace"), "source": site}
        try:
            article = await extractor.read(page, zone, _LEAST_CHARACTERS)
        except FetchError as error:
            return f"a page that gives no text ({error.reason})"
        return {
            "date": article.published_at.isoformat() if article.published_at else when,
            "text": article.text,
            "title": article.title or None,
            "source": site,
            "author": ", ".join(article.authors) or None,
        }

    async def read_all(some: list[_Page]) -> list[tuple[int, Record]]:
        records = await asyncio.gather(*(read(page, when) for _, page, when in some))
        return [(number, record) for (number, _, _), record in zip(some, records, strict=True)]

    while some := list(islice(pages, _TOGETHER)):
        yield from runner.run(read_all(some))
