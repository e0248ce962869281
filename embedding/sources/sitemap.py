"""Sitemaps: news sitemaps, plain ones, and indexes of them."""

from __future__ import annotations

import gzip
import io
import math
import re
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from lxml import etree

from embedding.kernel.errors import FetchError
from embedding.sources.base import (
    FetchedPage,
    ListedItem,
    ListingPage,
    Pseudonyms,
    Reference,
    SourceAdapter,
    Web,
)
from embedding.sources.changes import ChangeRate
from embedding.sources.config import SourceConfig
from embedding.sources.feed import read_feed
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, WEB, SourceTraits
from embedding.sources.links import join
from embedding.sources.times import parse_time

_ACCEPT = "application/xml, text/xml;q=0.9, */*;q=0.5"
_MAX_BYTES = 64 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_NAMED = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w-]{2,30})""")
_ROOT = re.compile(r"<(?:[\w-]+:)?(?:urlset|sitemapindex)\b")
_FEED = re.compile(r"(?:\s|<[?!][^<>]*>)*<(?:rss|feed|rdf:RDF)\b")
_BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_ADDRESS = re.compile(r"https?://\S{1,2000}", re.IGNORECASE)
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
    if _FEED.match(page.text):  # a sitemap may be one (sitemaps.org)
        return read_feed(source, page)
    listing, links = read_sitemap(page, source.timezone), re.compile(source.links or "")

    def newest(references: Iterable[Reference], most: int) -> tuple[Reference, ...]:
        # Plain sitemaps are often oldest first: the newest must survive the limits.
        ordered = sorted(references, key=lambda it: it.published_at or _OLDEST, reverse=True)
        return tuple(ordered[:most])

    matching = (reference for reference in listing.references if links.search(reference.url))
    children = newest(listing.children, source.pages)
    return ListingPage(newest(matching, source.max_items), children=children)


def read_sitemap(page: FetchedPage, zone: str) -> ListingPage:
    """Read a sitemap, an index, or a text file of addresses (sitemaps.org 0.9, Google news 0.9).

    Raises FetchError.
    """
    text = _plain(page)
    head = _ROOT.search(text)
    if head is None and not text.startswith("<"):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        links = list(filter(_ADDRESS.fullmatch, lines))
        if not lines or len(links) < len(lines) / 2:
            raise FetchError(
                "parse", f"{page.url}: not a sitemap (neither XML nor an address a line)."
            )
        return ListingPage(tuple(Reference(join(page.url, link)) for link in links))
    # A program may have written warnings before it.
    text = text[head.start() if head else 0 :]
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, recover=True, huge_tree=False, remove_comments=True
    )
    # A bare `&`, as in `?a=1&b=2`, stands for itself, as each does in CDATA.
    begin, *sections = text.split("<![CDATA[")
    parts = [_BARE.sub("&amp;", begin)]
    for section in sections:
        data, end, rest = section.partition("]]>")
        parts += ["<![CDATA[", data, end, _BARE.sub("&amp;", rest)]
    try:
        root = etree.fromstring("".join(parts).encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FetchError("parse", f"{page.url}: not an XML sitemap.") from error
    if root is None or _local(root) not in ("urlset", "sitemapindex"):
        raise FetchError("parse", f"{page.url}: not a sitemap (neither urlset nor sitemapindex).")
    # Where it is cut off, the last address may be a part of one.
    nodes = list(root) if text.endswith(">") else root[:-1]
    entries = tuple(entry for node in nodes if (entry := _entry(node, page.url, zone)))
    index = _local(root) == "sitemapindex"
    return ListingPage((), children=entries) if index else ListingPage(entries)


def _plain(page: FetchedPage) -> str:
    """The text, unpacked when the file itself is gzip (`sitemap.xml.gz`)."""
    text = page.text
    if page.body.startswith(_GZIP):
        body = _unpacked(page)
        named = _NAMED.match(body)
        try:
            text = body.decode(named[1].decode() if named else "utf-8", "replace")
        except LookupError:
            text = body.decode("utf-8", "replace")
    return text.lstrip("\ufeff").strip()


def _unpacked(page: FetchedPage) -> bytes:
    """What a gzip file holds, of one member or several (RFC 1952, 2.2)."""
    body = bytearray()
    with suppress(OSError, EOFError, zlib.error), gzip.open(io.BytesIO(page.body)) as file:
        while len(body) <= _MAX_BYTES and (more := file.read1(1 << 20)):
            body += more
    if not body:
        raise FetchError("parse", f"{page.url}: broken gzip file.")
    if len(body) > _MAX_BYTES:
        raise FetchError("too_large", f"{page.url}: unpacks to more than {_MAX_BYTES} bytes.")
    return bytes(body)


def _local(node: etree._Element) -> str:
    """Its name without a namespace, also one that is not declared."""
    return re.split("[}:]", node.tag)[-1] if isinstance(node.tag, str) else ""


def _entry(node: etree._Element, base: str, zone: str) -> Reference | None:
    """One `<url>` or `<sitemap>`; a news publication date wins over `lastmod`.

    What it says of pictures and videos is not the article's.
    """
    own = _texts(node)
    news = next((child for child in node if _local(child) == "news"), None)
    article = {} if news is None else _texts(news)
    bare = _ADDRESS.fullmatch((node.text or "").strip())
    link = join(base, own.get("loc") or (bare[0] if bare else ""))
    if not link:
        return None
    published = parse_time(article.get("publication_date"), zone)
    changed = parse_time(own.get("lastmod"), zone)
    return Reference(
        link,
        published or changed,
        article.get("title", ""),
        is_lastmod=published is None and changed is not None,
    )


def _texts(node: etree._Element) -> dict[str, str]:
    """The first text of each name among the children of an element."""
    texts: dict[str, str] = {}
    for child in node:
        if text := (child.text or "").strip():
            texts.setdefault(_local(child), text)
    return texts


@SOURCES.register(
    "sitemap",
    SourceTraits(
        settings=(*COMMON_SETTINGS, *WEB, "links", "pages"),
        noun="a sitemap",
        listing=True,
        discoverable=True,
    ),
)
class SitemapAdapter(SourceAdapter):
    """Lists the articles of a sitemap and of its newest children.

    A changed `lastmod` is a sign that a child has something new, and some sites change it without
    need or never. How far to trust it is learnt from the children that were read, all together:
    a child is read when a change of it is as likely as not. Time counts in polls here.
    """

    listing = staticmethod(read_map)

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        super().__init__(source, pseudonyms)
        self._children: tuple[Reference, ...] = ()
        self._seen: dict[str, _Child] = {}
        self.trust = ChangeRate(_SILENT, trust=_TRUST)
        """How often children change without their `lastmod`, and how often that tells the truth."""

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
                urls = [reference.url for reference in wanted]
                changed = bool(urls) and not web.all_known(urls)
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
