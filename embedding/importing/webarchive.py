"""WARC: pages as crawlers and web archives keep them, read as the crawler reads them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from embedding.importing.opening import check_file
from embedding.importing.readers import READERS, RawRecords, ReaderTraits, ReadOptions, in_columns
from embedding.kernel.errors import FetchError, InputError
from embedding.sources.base import FetchedPage

if TYPE_CHECKING:
    from embedding.crawl.extractor import Extractor

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
    ReaderTraits(noun="a web archive", suffixes=(".warc",), begins=(b"WARC/",), named=True),
)
def read_warc(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """Date, title, text, host and authors of each page that was answered.

    A page without a date of its own has that of the crawl. Pictures and errors are left out.
    """
    from embedding.crawl.extractor import Extractor  # trafilatura takes its time

    check_file(path)
    size = path.stat().st_size
    with path.open("rb") as file, asyncio.Runner() as runner:
        extractor = Extractor(max(1, (os.cpu_count() or 2) - 1), _LIMIT_S, _MOST_CHARACTERS)
        try:
            records = _records(_pages(file, path, since), runner, extractor, options.timezone)
            yield from in_columns(records, lambda: min(file.tell() / size, 1.0), _TOGETHER)
        finally:
            runner.run(extractor.close())


def _pages(file: Any, path: Path, since: int) -> Iterator[_Page]:
    """The answers in an archive from number `since` on."""
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    number = 0
    try:
        for record in ArchiveIterator(file):
            if record.rec_type not in ("response", "resource"):
                continue
            if number >= since:
                when = record.rec_headers.get_header("WARC-Date") or ""
                yield number, _page(record), when
            number += 1
    except (ArchiveLoadFailed, EOFError, OSError, ValueError) as error:
        if not number:
            raise InputError(f"{path}: not a WARC file ({error}).") from error
        yield max(number, since), "the file ends in the middle of it", ""


def _page(record: Any) -> FetchedPage | str:
    """The answer, or why it is none."""
    url = record.rec_headers.get_header("WARC-Target-URI") or ""
    headers = record.http_headers
    kind = (headers or record.rec_headers).get_header("Content-Type") or "text/html"
    status = headers.get_statuscode() if headers is not None else "200"
    if status != "200":
        return f"an answer with status {status}"
    if not kind.lower().startswith(("text/html", "application/xhtml")):
        return f"{kind.partition(';')[0].strip()[:60]}, no page"
    body = record.content_stream().read(_LARGEST + 1)
    if len(body) > _LARGEST:
        return f"a page of more than {_LARGEST >> 20} MB"
    return FetchedPage(url, "", body, {"content-type": kind})


def _records(
    pages: Iterator[_Page], runner: asyncio.Runner, extractor: Extractor, zone: str
) -> Iterator[tuple[int, Mapping[str, str | None] | str]]:
    async def read(page: FetchedPage | str, when: str) -> Mapping[str, str | None] | str:
        if isinstance(page, str):
            return page
        try:
            found = await extractor.read(page, zone, _LEAST_CHARACTERS)
        except FetchError as error:
            return f"a page that gives no text ({error.reason})"
        return {
            "date": found.published_at.isoformat() if found.published_at else when,
            "text": found.text,
            "title": found.title or None,
            "source": (urlsplit(page.url).hostname or "").removeprefix("www.") or None,
            "author": ", ".join(found.authors) or None,
        }

    async def read_all(some: list[_Page]) -> list[Mapping[str, str | None] | str]:
        return list(await asyncio.gather(*(read(page, when) for _, page, when in some)))

    while some := list(islice(pages, _TOGETHER)):
        numbers = (number for number, _, _ in some)
        yield from zip(numbers, runner.run(read_all(some)), strict=True)
