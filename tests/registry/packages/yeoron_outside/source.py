"""A kind of source: a page of lines, each a time, an address and a title, with tabs between."""

from __future__ import annotations

from collections.abc import AsyncIterator

from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, ListedItem, ListingPage, Pseudonyms, Reference, Web
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, WEB, SourceTraits
from embedding.sources.times import parse_time

EXAMPLE = "".join(
    f"2020-02-03T0{i}:00:00+09:00\thttps://example.org/a/{i}\t제목 {i}\n" for i in range(3)
)
"""What tests/sources/test_contract.py lets a listing of this kind hold."""


@SOURCES.register(
    "outside-lines",
    SourceTraits(settings=(*COMMON_SETTINGS, *WEB), noun="a page of lines", listing=True),
)
class LinesAdapter:
    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        self.source = source
        self.complete = False

    @staticmethod
    def listing(source: SourceConfig, page: FetchedPage) -> ListingPage:
        found = []
        for line in page.text.splitlines()[: source.max_items]:
            parts = line.split("\t")
            if len(parts) != 3:
                raise FetchError("parse", f"{page.url}: a line without two tabs.")
            found.append(Reference(parts[1], parse_time(parts[0], source.timezone), parts[2]))
        return ListingPage(tuple(found))

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        self.complete = False
        page = await web.get(self.source.url)
        if page is not None:
            for reference in (await web.listing(self.source, page)).references:
                yield reference
        self.complete = True
