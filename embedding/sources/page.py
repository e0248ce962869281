"""Paged link listings in plain HTML."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

from lxml import html
from lxml.cssselect import CSSSelector, SelectorError
from lxml.etree import ParserError

from embedding.kernel.errors import FetchError
from embedding.sources.base import (
    FetchedPage,
    ListedItem,
    ListingPage,
    Reference,
    SourceAdapter,
    Web,
)
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, WEB, SourceTraits
from embedding.sources.links import LINK_SELECTOR, join, linked
from embedding.sources.times import parse_time

_CALL = re.compile(r"""\w\(\s*['"]?([1-9]\d{0,5})['"]?\s*[,)]""")
_PATH_OF_PAGE = re.compile(r"(?<=/page)/[0-9]{1,6}(?=/?$)")
_NUMBER_OF_PAGE = re.compile(
    r"(?:(?:cur(?:rent)?|go|now|c|n|s)?_?page(?:_?(?:no|num(?:ber)?|index|idx))?|pg|p|cp|pn)", re.I
)
_OFFSET = re.compile(r"(?:limit_?)?start|offset", re.IGNORECASE)
"""What numbers the first item of a page in place of the page."""


def check_selectors(source: SourceConfig) -> None:
    """ValueError for a selector that is none."""
    for name in ("items", "link", "title", "time", "next"):
        text = getattr(source, name) or "*"
        try:
            CSSSelector(text)
        except (SelectorError, ValueError) as error:
            raise ValueError(f"{name}: {text!r} is not a CSS selector ({error})") from error


def read_links(source: SourceConfig, page: FetchedPage) -> ListingPage:
    """The links of a page in its order and the address of the next; FetchError (`parse`).

    Title and time are those of a row where the source says what one is.
    """
    try:
        parser = html.HTMLParser(encoding="utf-8", no_network=True)  # threads share none
        root = html.document_fromstring(page.text.encode(), parser=parser)
    except (ParserError, ValueError) as error:
        raise FetchError("parse", f"{page.url}: not an HTML listing.") from error
    base = join(page.url, "".join(root.xpath("//base/@href")[:1])) or page.url
    wanted = re.compile(source.links or "")
    anchors = CSSSelector(source.link or LINK_SELECTOR)
    of_row = {
        name: CSSSelector(selector)
        for name, selector in (("title", source.title), ("time", source.time))
        if selector and source.items
    }
    seen: dict[str, Reference] = {}
    for row in CSSSelector(source.items)(root) if source.items else [root]:
        title, time = (_text(of_row.get(name), row) for name in ("title", "time"))
        when = parse_time(time, source.timezone, page.read_at)
        for anchor in anchors(row):
            link = linked(anchor, base, page.encoding).partition("#")[0]
            if link and wanted.search(link):
                # The text of a whole row names the author, too.
                own = _content(anchor) if anchor.tag == "a" else ""
                seen.setdefault(link, Reference(link, when, title or own))
    pager = CSSSelector(source.next)(root) if source.next else []
    return ListingPage(tuple(seen.values()), _following(pager, base, page))


@SOURCES.register(
    "page",
    SourceTraits(
        settings=(
            *(*COMMON_SETTINGS, *WEB, "links", "pages"),
            *("items", "link", "title", "time", "next"),
        ),
        defaults={"link": LINK_SELECTOR},
        check=check_selectors,
        noun="a page that lists articles",
        listing=True,
        discoverable=True,
    ),
)
class PageAdapter(SourceAdapter):
    """Lists links of a page and of the pages after it, until all links of one are known."""

    listing = staticmethod(read_links)

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        self.complete = False
        left = self.source.max_items
        url: str | None = self.source.url
        for _ in range(self.source.pages):
            page = await web.get(url, accept="text/html, */*;q=0.5") if url else None
            if page is None:
                break
            listing = await web.listing(self.source, page)
            urls = [reference.url for reference in listing.references]
            # A page without a wanted link says nothing of those behind it.
            all_known = bool(urls) and web.all_known(urls)
            for reference in listing.references[:left]:
                yield reference
            left -= len(listing.references)
            url = listing.next
            if left <= 0 or all_known:
                break
        self.complete = True


def _following(pager: Sequence[html.HtmlElement], base: str, page: FetchedPage) -> str | None:
    """Where the page behind this one is, of all that a pager links to: also the first and last."""
    links = []
    for node in pager:
        link = linked(node, base, page.encoding)
        if link.partition("#")[0] in ("", page.url):
            link = _by_script(node, base, page) or page.url
        links += [link] if link != page.url else []
    numbered = {number: url for url in reversed(links) if (number := _number(url)) is not None}
    if len(links) < 2 or not numbered:
        return links[0] if links else None
    # The address of the first page may not say so, and some count from 0.
    here = _number(page.url)
    here = min(*numbered, 1) if here is None else here
    later = [number for number in numbered if number > here]
    return numbered[min(later)] if later else None


def _number(url: str) -> int | None:
    """The number of a page of a listing, where its address tells it."""
    parts = urlsplit(url)
    fields = parse_qsl(parts.query)
    named = [value for name, value in fields if _NUMBER_OF_PAGE.fullmatch(name)]
    named = named or [value for name, value in fields if _OFFSET.fullmatch(name)]
    number = re.fullmatch(r"[0-9]{1,6}", named[0]) if named else _PATH_OF_PAGE.search(parts.path)
    return int(number[0].rpartition("/")[2]) if number else None


def _by_script(link: html.HtmlElement, base: str, page: FetchedPage) -> str | None:
    """The address that a link such as `javascript:goPage(3)` leads to, where a form of the page or
    its address has a field for the number of a page. A form that is posted is asked for all the
    same; a server that does not answer gives the first page again, which is known."""
    call = _CALL.search(f"{link.get('href') or ''} {link.get('onclick') or ''}")
    data = (link.get(name) or "" for name in ("data-page", "data-next-page", "data-next"))
    number = call[1] if call else next(filter(str.isdecimal, data), None)
    if number is None:
        return None
    forms = [
        (join(base, form.get("action"), page.encoding) or page.url, form.form_values())
        for form in link.getroottree().getroot().forms
    ]
    forms.append((page.url, parse_qsl(urlsplit(page.url).query, True, encoding=page.encoding)))
    for address, fields in forms:
        if any(_NUMBER_OF_PAGE.fullmatch(name) for name, _ in fields):
            sent = [(n, number if _NUMBER_OF_PAGE.fullmatch(n) else v) for n, v in fields]
            return join(address, "?" + urlencode(sent, encoding=page.encoding, errors="replace"))
    return None


def _content(node: html.HtmlElement) -> str:
    return " ".join(str(node.text_content()).split())[:300]


def _text(selector: CSSSelector | None, row: html.HtmlElement) -> str:
    nodes = selector(row) if selector else []
    return (nodes[0].get("datetime") or _content(nodes[0])) if nodes else ""
