"""HTML → text, title, time and canonical address. Runs in a process of its own."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lxml import etree
from trafilatura import bare_extraction, load_html

from embedding.crawl.bylines import authors_of, drop_bylines, people, without_bylines, without_names
from embedding.crawl.charset import decode
from embedding.crawl.jsonld import blocks
from embedding.crawl.origins import DateOrigin
from embedding.crawl.publication import published
from embedding.crawl.shingles import signature
from embedding.kernel.errors import FetchError
from embedding.sources.links import GOES, join, same_site

_SPACE = re.compile(r"[^\S\n]+")
_REFRESH = re.compile(
    r"\s*\d(?:\.\d{0,9})?\s*[;,]\s*(?:url\s{0,9}=\s{0,9})?[\"']?([^\"'\s][^\"']*)", re.IGNORECASE
)
"""Where a page sends its reader within ten seconds."""
_MOVED = re.compile(rf"(?:(?:window|document|self|top|parent)\.)?{GOES.pattern}")
"""A script that does nothing else than to send the reader to another page."""
_BARE = re.compile(r"\s*<(?:meta|frameset)\b", re.IGNORECASE)
"""A page that is a refresh or frames and nothing else, not even <html>."""
_MAIN = re.compile(r"main|content|body|view|article|post", re.IGNORECASE)
"""Names of the frame that holds the article."""


@dataclass(frozen=True)
class Extracted:
    """What a page held. `digest` is over the normalised text, `signature` its MinHash (bytes).

    dated_by  how `published_at` is known
    shows     the page of the same site that it refreshes to, has in a frame, or to which its
              script goes; only then may the text be empty

    `authors` are names, which stand in neither text nor title; they never leave the process.
    """

    text: str
    title: str
    published_at: datetime | None
    canonical: str | None
    digest: str
    signature: bytes
    authors: tuple[str, ...] = ()
    dated_by: DateOrigin = "none"
    shows: str | None = None


def read_page(
    body: bytes,
    content_type: str,
    url: str,
    zone: str,
    authors: Sequence[str] = (),
    read_at: datetime | None = None,
) -> Extracted:
    """Decode and read one answer; see `extract`. Raises FetchError (also `bad_encoding`)."""
    try:
        page = decode(body, {"content-type": content_type})
    except FetchError as error:
        raise FetchError(error.reason, f"{url}: {error}") from error
    return extract(page, url, zone, authors, read_at)


def extract(
    page: str, url: str, zone: str, authors: Sequence[str] = (), read_at: datetime | None = None
) -> Extracted:
    """Read one HTML page; times without a zone are in `zone`.

    authors  names that are known from elsewhere, as a feed gives them
    read_at  when it was fetched, for times such as `5분 전`

    Raises FetchError (`empty`, `parse`).
    """
    tree = load_html(f"<html>{page}" if _BARE.match(page) else page)
    if tree is None:
        raise FetchError("empty", f"{url}: no HTML in the answer.")
    described = blocks(tree)
    publication = published(tree, described, url, zone, read_at)
    links = tree.xpath("//link[@rel='canonical']/@href")
    canonical, title = join(url, str(links[0])) or None if links else None, _title(tree)
    metas = tree.xpath("//meta[@http-equiv and @content][not(ancestor::noscript)]")
    contents = (m.get("content") for m in metas if m.get("http-equiv").lower() == "refresh")
    refreshed = _first([link[1] for text in contents if (link := _REFRESH.match(text))], url)
    framed = _framed(tree, url)
    scripts = (code.strip(" \t\r\n<!-/>;") for code in tree.xpath("//script/text()"))
    moved = _first([goes[2] for code in scripts if (goes := _MOVED.fullmatch(code))], url)
    named = tuple(dict.fromkeys([*authors_of(tree, described), *people(authors)]))
    drop_bylines(tree)
    try:
        article = bare_extraction(
            tree, fast=True, with_metadata=False, include_comments=False, include_tables=False
        )
    except (ValueError, TypeError, AttributeError, RecursionError, etree.LxmlError) as error:
        raise FetchError("parse", f"{url}: the page cannot be read.") from error
    text, named = without_bylines(_tidy(str(getattr(article, "text", "") or "")), named)
    # What stands on a page that its reader hardly sees is no article.
    text = "" if refreshed else _tidy(text)
    title = " ".join(without_names(title, named).split())
    shows = refreshed or framed or moved
    if not text and shows is None:
        raise FetchError("empty", f"{url}: no text on the page.")
    return Extracted(
        text,
        title,
        publication.at,
        canonical,
        digest(text),
        signature(text),
        named,
        publication.origin,
        shows,
    )


def headline_of(page: str) -> str:
    """A page's headline without the names of its authors; empty where it has none."""
    tree = load_html(page)
    if tree is None:
        return ""
    return " ".join(without_names(_title(tree), authors_of(tree, blocks(tree))).split())


def digest(text: str) -> str:
    """32 hex digits that are equal for texts equal up to spaces and Unicode composition."""
    plain = " ".join(unicodedata.normalize("NFKC", text).split())
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _tidy(text: str) -> str:
    lines = (_SPACE.sub(" ", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _title(tree: Any) -> str:
    for path in ("//meta[@property='og:title']/@content", "//title/text()", "//h1//text()"):
        if title := " ".join(" ".join(tree.xpath(path)[:1]).split()):
            return title[:300]
    return ""


def _framed(tree: Any, url: str) -> str | None:
    """The page of the same site in the frame of the article: known by its name, else the first."""
    frames = tree.xpath("//frame[@src] | //iframe[@src][not(ancestor::noscript)]")
    main = [frame for frame in frames if _MAIN.search(f"{frame.get('name')} {frame.get('id')}")]
    # An <iframe> of another name may be an advertisement.
    others = [frame for frame in frames if frame.tag == "frame"]
    return _first([frame.get("src") for frame in (*main, *others)], url)


def _first(links: Sequence[str], url: str) -> str | None:
    """The first of the links that leads to another page of the same site."""
    pages = (join(url, link).partition("#")[0] for link in links)
    return next((page for page in pages if page not in ("", url) and same_site(page, url)), None)
