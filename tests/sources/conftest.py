"""A canned web: the `Web` protocol answered from a dictionary, for adapters alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from embedding.kernel.clock import EventClock
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, Found, ListingPage
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import read_listing


class CannedWeb:
    def __init__(self) -> None:
        self.pages: dict[str, str | bytes] = {}
        self.found: list[Found] = []
        self.known: set[str] = set()
        self.asked: list[str] = []
        self.now = EventClock()

    async def get(self, url: str, *, accept: str = "*/*") -> FetchedPage | None:
        self.asked.append(url)
        if url not in self.pages:
            raise FetchError("http_4xx", f"{url}: answered with status 404.")
        body = self.pages[url]
        raw = body.encode() if isinstance(body, str) else body
        text = "" if raw.startswith(b"\x1f\x8b") else raw.decode()
        return FetchedPage(url, text, raw, {})

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        return read_listing(source, page)

    async def render(
        self, url: str, *, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        self.asked.append(url)
        shown = 1
        while shown < len(self.found) and not enough(self.found[:shown]):
            shown += 1
        return self.found[:shown]

    def all_known(self, keys: Sequence[str]) -> bool:
        return set(keys) <= self.known

    def clock(self) -> EventClock:
        return self.now


@pytest.fixture
def web() -> CannedWeb:
    return CannedWeb()
