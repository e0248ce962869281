"""What an adapter is: it lists one source, as references to fetch or as texts found inline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from embedding.kernel.authors import Pseudonyms as Pseudonyms
from embedding.kernel.clock import EventClock
from embedding.sources.config import SourceConfig


@dataclass(frozen=True)
class Reference:
    """The address of a text that is still to be fetched, with what the listing said of it.

    authors     names as they are written there: kept in memory until the text is read
    is_lastmod  `published_at` is when it was changed last, which its publication may be
    """

    url: str
    published_at: datetime | None = None
    title: str = ""
    authors: tuple[str, ...] = ()
    is_lastmod: bool = False


@dataclass(frozen=True)
class Inline:
    """A text that the listing itself contained. `key` is its unique address.

    `author` is the pseudonym made by `Pseudonyms`, never the name.
    """

    key: str
    text: str
    published_at: datetime | None = None
    title: str = ""
    author: str | None = None


ListedItem = Reference | Inline


@dataclass(frozen=True)
class FetchedPage:
    """One answer of the web: final address, decoded text, its bytes and lower-case headers.

    read_at   event time to which `어제` and `3시간 전` on it refer; None: they mean nothing
    encoding  in which it was, and in which queries of its links are sent
    """

    url: str
    text: str
    body: bytes
    headers: Mapping[str, str]
    status: int = 200
    read_at: datetime | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True)
class ListingPage:
    """What one answer of a listing held.

    next      address of the page after it
    children  sitemaps that an index names, each with its `lastmod`
    """

    references: tuple[Reference, ...]
    next: str | None = None
    children: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class Found:
    """What one item of a rendered page held; empty strings where nothing was found."""

    id: str
    link: str
    title: str
    time: str
    text: str
    author: str


class Web(Protocol):
    """What the crawler lends to an adapter. Each call obeys robots, rates and limits."""

    async def get(self, url: str, *, accept: str = "*/*") -> FetchedPage | None:
        """Fetch a listing; None when it has not changed since the last complete poll.

        Raises FetchError.
        """
        ...

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        """What `registry.read_listing` finds on a page, within a limit of time.

        Raises FetchError.
        """
        ...

    async def render(
        self, url: str, *, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        """Items of a page after its scripts ran; it is scrolled until `enough` of the items so
        far is true or nothing more comes. Raises FetchError.
        """
        ...

    def all_known(self, keys: Sequence[str]) -> bool:
        """Whether all are known already and nothing older waits to be listed again."""
        ...

    def clock(self) -> EventClock: ...


def event_time(web: Web) -> datetime:
    """Now, by the replay clock where there is one."""
    return datetime.fromtimestamp(web.clock().event_now(), UTC)


class Adapter(Protocol):
    """Lists one source. An instance lives as long as the crawler and may remember cursors."""

    source: SourceConfig
    complete: bool
    """Whether the last poll read the listing to its end, so that what it lacks is gone."""

    def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        """One poll: items in the order of the listing; raises FetchError or InputError."""
        ...


class SourceAdapter:
    """What the adapters of this room begin with."""

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        self.source = source
        self.complete = False
        self._pseudonyms = pseudonyms

    def inline(
        self, key: str, text: str, published_at: datetime | None, title: str, author: str
    ) -> Inline:
        """A text of the listing itself; of the name `author` only a keyed hash is kept."""
        pseudonym = self._pseudonyms.grouped(self.source.name, author)
        return Inline(key, text, published_at, title, pseudonym)
