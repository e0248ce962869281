"""HTML → text, title, time and canonical address. Runs in a process of its own."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lxml import etree
from trafilatura import bare_extraction, load_html

from embedding.crawl.bylines import (
    authors_of,
    drop_bylines,
    people,
    without_bylines,
    without_names,
)
from embedding.crawl.charset import decode
from embedding.crawl.shingles import signature
from embedding.kernel.errors import FetchError
from embedding.sources.links import join
from embedding.sources.times import parse_time

_SPACE = re.compile(r"[^\S\n]+")
_TIME_NAMES = (
    "article:published_time",
    "og:article:published_time",
    "og:regdate",
    "datepublished",
    "date.issued",
    "dc.date.issued",
    "parsely-pub-date",
    "pubdate",
    "date",
)
_MOST_JSON = 200_000


@dataclass(frozen=True)
class Extracted:
    """What a page held. `digest` is over the normalised text, `signature` its MinHash (bytes).

    `authors` are names, which stand in neither text nor title; they never leave the process.
    """

    text: str
    title: str
    published_at: datetime | None
    canonical: str | None
    digest: str
    signature: bytes
    authors: tuple[str, ...] = ()


def read_page(
    body: bytes, content_type: str, url: str, zone: str, authors: Sequence[str] = ()
) -> Extracted:
    """Decode and read one answer; see `extract`. Raises FetchError (also `bad_encoding`)."""
    try:
        page = decode(body, {"content-type": content_type})
    except FetchError as error:
        raise FetchError(error.reason, f"{url}: {error}") from error
    return extract(page, url, zone, authors)


def extract(page: str, url: str, zone: str, authors: Sequence[str] = ()) -> Extracted:
    """Read one HTML page; times without a zone are in `zone`.

    authors  names that are known from elsewhere, as a feed gives them

    The publish time is the first found of: JSON-LD datePublished, the usual meta elements, the
    first `<time datetime>`. Raises FetchError (`empty`, `parse`).
    """
    tree = load_html(page)
    if tree is None:
        raise FetchError("empty", f"{url}: no HTML in the answer.")
    published, canonical, title = _published(tree, zone), _canonical(tree, url), _title(tree)
    named = tuple(dict.fromkeys([*authors_of(tree), *people(authors)]))
    drop_bylines(tree)
    try:
        found = bare_extraction(
            tree,
            fast=True,
            with_metadata=False,
            include_comments=False,
            include_tables=False,
        )
    except (ValueError, TypeError, AttributeError, RecursionError, etree.LxmlError) as error:
        raise FetchError("parse", f"{url}: the page cannot be read.") from error
    text, named = without_bylines(_tidy(str(getattr(found, "text", "") or "")), named)
    text, title = _tidy(text), " ".join(without_names(title, named).split())
    if not text:
        raise FetchError("empty", f"{url}: no text on the page.")
    return Extracted(text, title, published, canonical, digest(text), signature(text), named)


def headline_of(page: str) -> str:
    """A page's headline without the names of its authors; empty where it has none."""
    tree = load_html(page)
    if tree is None:
        return ""
    return " ".join(without_names(_title(tree), authors_of(tree)).split())


def digest(text: str) -> str:
    """32 hex digits that are equal for texts equal up to spaces and Unicode composition."""
    plain = " ".join(unicodedata.normalize("NFKC", text).split())
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _tidy(text: str) -> str:
    """Lines without outer spaces, no empty ones."""
    lines = (_SPACE.sub(" ", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _title(tree: Any) -> str:
    for path in ("//meta[@property='og:title']/@content", "//title/text()", "//h1//text()"):
        found = " ".join(" ".join(tree.xpath(path)[:1]).split())
        if found:
            return found[:300]
    return ""


def _canonical(tree: Any, url: str) -> str | None:
    links = tree.xpath("//link[@rel='canonical']/@href")
    return (join(url, str(links[0])) or None) if links else None


def _published(tree: Any, zone: str) -> datetime | None:
    return next((when for value in _times(tree) if (when := parse_time(value, zone))), None)


def _times(tree: Any) -> Iterator[object]:
    """Candidates for the publish time, the most reliable first."""
    for script in tree.xpath("//script[@type='application/ld+json']/text()"):
        yield from _dates(_json(str(script)[:_MOST_JSON]), 6)
    named: dict[str, str] = {}
    for meta in tree.xpath("//meta[@content]"):
        name = meta.get("property") or meta.get("name") or meta.get("itemprop") or ""
        named.setdefault(name.lower(), meta.get("content"))
    yield from (named.get(name) for name in _TIME_NAMES)
    yield from tree.xpath("//time/@datetime")[:3]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dates(value: Any, depth: int) -> Iterator[object]:
    """Every datePublished inside a JSON-LD value."""
    if isinstance(value, dict):
        if "datePublished" in value:
            yield value["datePublished"]
        children = list(value.values())
    else:
        children = value if isinstance(value, list) else []
    if depth:
        for child in children[:50]:
            yield from _dates(child, depth - 1)
