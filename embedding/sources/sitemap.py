"""Sitemaps: news sitemaps, plain ones, and indexes of them."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

from lxml import etree

from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, ListedItem, ListingPage, Pseudonyms, Reference, Web
from embedding.sources.changes import ChangeRate
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, WEB, SourceTraits
from embedding.sources.links import join
from embedding.sources.times import parse_time

_ACCEPT = "application/xml, text/xml;q=0.9, */*;q=0.5"
_MAX_BYTES = 64 * 1024 * 1024
_OLDEST = datetime.min.replace(tzinfo=UTC)
_SILENT = 0.02
"""Changes a poll of a child whose `lastmod` stays the same, before anything is known."""
_TRUST = 0.9
"""Probability that a changed `lastmod` tells the truth, before anything is known."""
_AS_LIKELY_AS_NOT = math.log(2.0)
"""Expected changes at which one has happened with probability 1/2."""


@dataclass
class _Child:
    """What is remembered of a child: since it was read last, polls of the index and signs."""

    lastmod: datetime | None = None
    read: bool = False
    polls: int = 0
    signs: int = 0


def read_map(source: SourceConfig, page: FetchedPage) -> ListingPage:
    """The newest `max_items` articles whose address matches, and the newest `pages` children."""
    found, links = read_sitemap(page, source.timezone), re.compile(source.links or "")
    # Plain sitemaps are often oldest first: the newest must survive the limits.
    matching = [one for one in found.references if links.search(one.url)]
    return ListingPage(
        tuple(sorted(matching, key=_when, reverse=True)[: source.max_items]),
        children=tuple(sorted(found.children, key=_when, reverse=True)[: source.pages]),
    )


def _when(one: Reference) -> datetime:
    return one.published_at or _OLDEST


def read_sitemap(page: FetchedPage, zone: str) -> ListingPage:
    """Read a sitemap or an index (sitemaps.org 0.9, Google news 0.9); raises FetchError."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, recover=True, huge_tree=False, remove_comments=True
    )
    try:
        root = etree.fromstring(_plain(page), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FetchError("parse", f"{page.url}: not an XML sitemap.") from error
    if root is None or _local(root) not in ("urlset", "sitemapindex"):
        raise FetchError("parse", f"{page.url}: not a sitemap (neither urlset nor sitemapindex).")
    found = tuple(entry for entry in (_entry(node, page.url, zone) for node in root) if entry)
    index = _local(root) == "sitemapindex"
    return ListingPage((), children=found) if index else ListingPage(found)


def _plain(page: FetchedPage) -> bytes:
    """The XML, unpacked when the file itself is gzip (`sitemap.xml.gz`)."""
    if not page.body.startswith(b"\x1f\x8b"):
        return re.sub(r"^\s*<\?xml[^>]*\?>", "", page.text, count=1).strip().encode()
    try:
        unpacked = zlib.decompressobj(31)
        xml = unpacked.decompress(page.body, _MAX_BYTES)
    except zlib.error as error:
        raise FetchError("parse", f"{page.url}: broken gzip file.") from error
    if unpacked.unconsumed_tail:
        raise FetchError("too_large", f"{page.url}: unpacks to more than {_MAX_BYTES} bytes.")
    return xml


def _local(node: etree._Element) -> str:
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def _entry(node: etree._Element, base: str, zone: str) -> Reference | None:
    """One `<url>` or `<sitemap>`; a news publication date wins over `lastmod`."""
    values: dict[str, str] = {}
    for child in node.iter():
        text = (child.text or "").strip()
        if text:
            values.setdefault(_local(child), text)
    link = join(base, values.get("loc"))
    if not link:
        return None
    when = parse_time(values.get("publication_date"), zone) or parse_time(
        values.get("lastmod"), zone
    )
    return Reference(link, when, values.get("title", ""))


@SOURCES.register(
    "sitemap",
    SourceTraits(
        settings=(*COMMON_SETTINGS, *WEB, "links", "pages"),
        noun="a sitemap",
        listing=True,
        discoverable=True,
    ),
)
class SitemapAdapter:
    """Lists the articles of a sitemap and of its newest children.

    A changed `lastmod` is a sign that a child has something new, and some sites change it without
    need or never. How far to trust it is learnt from the children that were read, all together:
    a child is read when a change of it is as likely as not. Time counts in polls here.
    """

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        del pseudonyms  # a listing of articles names no author
        self.source = source
        self.complete = False
        self._children: tuple[Reference, ...] = ()
        self._seen: dict[str, _Child] = {}
        self.trust = ChangeRate(_SILENT, trust=_TRUST)
        """How often children change without their `lastmod`, and how often that tells the truth."""

    @staticmethod
    def listing(source: SourceConfig, page: FetchedPage) -> ListingPage:
        """See `read_map`."""
        return read_map(source, page)

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        """References of the sitemap; of an index only of children that changed."""
        self.complete = False
        left = self.source.max_items
        root = await self._get(web, self.source.url)
        if root is not None:
            self._children = root.children
            for reference in root.references[:left]:
                left -= 1
                yield reference
        for url, child in self._due():
            if left <= 0:
                return
            sitemap = await self._get(web, url)
            wanted = sitemap.references[:left] if sitemap else ()
            if child.read:
                changed = bool(wanted) and not web.all_known([one.url for one in wanted])
                self.trust.observe(child.polls, changed, child.signs)
            for reference in wanted:
                left -= 1
                yield reference
            child.read, child.polls, child.signs = True, 0, 0
        self.complete = True

    async def _get(self, web: Web, url: str) -> ListingPage | None:
        page = await web.get(url, accept=_ACCEPT)
        return None if page is None else await web.listing(self.source, page)

    def _due(self) -> list[tuple[str, _Child]]:
        """Newest children first; without a `lastmod`, or never read, they are always due."""
        due = []
        for reference in self._children:
            child = self._seen.setdefault(reference.url, _Child())
            child.polls += 1
            if reference.published_at != child.lastmod:
                child.lastmod = reference.published_at
                child.signs += 1
            hazard = self.trust.hazard(child.polls, child.signs)
            if not child.read or reference.published_at is None or hazard >= _AS_LIKELY_AS_NOT:
                due.append((reference.url, child))
        return due
