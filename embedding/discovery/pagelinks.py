"""The links of a page: feeds, sitemaps, other pages, and whether it is a listing itself."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from lxml import html
from lxml.cssselect import CSSSelector
from lxml.etree import ParserError

from embedding.crawl.addresses import canonical
from embedding.kernel.errors import FetchError
from embedding.sources.links import LINK_SELECTOR, linked

_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")
_FEED = re.compile(r"(?:^|[/._-])(?:rss|atom|feeds?)(?:[/._-]|$)", re.IGNORECASE)
_FILE = re.compile(
    r"\.(?:jpe?g|png|gif|webp|svg|ico|css|m?js|json|pdf|zip|gz|mp[34]|webm|woff2?|exe|docx?|xlsx?|hwp)$",
    re.IGNORECASE,
)
_ID = re.compile(r"[0-9a-f]{6,}|[0-9]{2,}|[a-z]*[0-9][a-z0-9-]{5,}", re.IGNORECASE)
_LEAST = 8
"""A page lists articles when it links to so many addresses of one form."""


@dataclass(frozen=True)
class PageLinks:
    """Addresses that a page names, absolute and canonical, in the order of the page.

    articles  regular expression of the addresses that it lists; None when it is no listing
    following CSS selector of the link to the next page of the listing, if any
    """

    feeds: tuple[str, ...]
    sitemaps: tuple[str, ...]
    others: tuple[str, ...]
    articles: str | None = None
    following: str | None = None


def read_links(text: str, url: str, encoding: str = "utf-8") -> PageLinks:
    """The links of an HTML page that was in this encoding; FetchError when it is none."""
    try:
        root = html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8"))
    except (ParserError, ValueError) as error:
        raise FetchError("parse", f"{url}: not an HTML page.") from error
    feeds, sitemaps, others = dict[str, None](), dict[str, None](), dict[str, None]()
    for node in CSSSelector(f"link, {LINK_SELECTOR}")(root):
        link = linked(node, url, encoding).partition("#")[0]
        address = canonical(link) if link and link != url else None
        if address is None:
            continue
        declared = node.tag == "link"
        path = urlsplit(address).path
        name = path.rpartition("/")[2].lower()
        if (declared and (node.get("type") or "").lower() in _FEEDS) or (
            not declared and _FEED.search(path)
        ):
            feeds[address] = None
        elif ("sitemap" in name and name.endswith((".xml", ".xml.gz"))) or (
            declared and node.get("rel") == "sitemap"
        ):
            sitemaps[address] = None
        elif not declared and "nofollow" not in (node.get("rel") or "") and not _FILE.search(path):
            others[address] = None
    following = "a[rel=next]" if root.xpath("//a[@rel='next'][@href]") else None
    return PageLinks(tuple(feeds), tuple(sitemaps), tuple(others), form_of(list(others)), following)


def form_of(addresses: Sequence[str]) -> str | None:
    """Regular expression of the largest group of addresses that differ by a number or id alone."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for address in addresses:
        form = _form(address)
        if form is not None:
            groups[form].add(address)
    if not groups:
        return None
    best = max(groups, key=lambda form: (len(groups[form]), form))
    return best if len(groups[best]) >= _LEAST else None


def spread(addresses: Sequence[str], n: int) -> list[str]:
    """`n` of the addresses, evenly from first to last."""
    if n >= len(addresses):
        return list(addresses)
    return [addresses[int(i * len(addresses) / n)] for i in range(n)]


def likely(addresses: Sequence[str]) -> list[str]:
    """The addresses that rather lead to listings: short paths first, few of one form."""
    seen: Counter[str] = Counter()
    order = []
    for at, address in enumerate(addresses):
        form = _form(address) or address
        seen[form] += 1
        order.append((seen[form], urlsplit(address).path.count("/"), at, address))
    return [address for *_, address in sorted(order)]


def _form(address: str) -> str | None:
    """The address's path as an expression with ids left open; None when it has none."""
    parts = urlsplit(address)
    pieces = [part for part in parts.path.split("/") if part]
    if not pieces or not any(_ID.fullmatch(part.partition(".")[0]) for part in pieces):
        for pair in parts.query.split("&"):  # a query that names the document: `view.php?id=12`
            name, _, value = pair.partition("=")
            if value and _ID.fullmatch(value) and name.lower() not in ("page", "p", "offset"):
                return re.escape(parts.path) + r"\?(?:[^#]*&)?" + re.escape(name) + "="
        return None
    opened = [r"[^/?#]+" if _ID.fullmatch(p.partition(".")[0]) else re.escape(p) for p in pieces]
    return "/" + "/".join(opened) + r"(?:[?#]|$)"
