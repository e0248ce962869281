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

from embedding.crawl.bylines import (
    authors_of,
    drop_bylines,
    people,
    without_bylines,
    without_names,
)
from embedding.crawl.charset import decode
from embedding.crawl.jsonld import blocks
from embedding.crawl.publication import DateOrigin, published
from embedding.crawl.shingles import signature
from embedding.kernel.errors import FetchError
from embedding.sources.links import join

_SPACE = re.compile(r"[^\S\n]+")


@dataclass(frozen=True)
class Extracted:
    """What a page held. `digest` is over the normalised text, `signature` its MinHash (bytes).

    dated_by  how `published_at` is known

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

    Raises FetchError (`empty`, `parse`).
    """
    tree = load_html(page)
    if tree is None:
        raise FetchError("empty", f"{url}: no HTML in the answer.")
    described = blocks(tree)
    publication = published(tree, described, url, zone)
    canonical, title = _canonical(tree, url), _title(tree)
    named = tuple(dict.fromkeys([*authors_of(tree, described), *people(authors)]))
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
    return Extracted(
        text,
        title,
        publication.at,
        canonical,
        digest(text),
        signature(text),
        named,
        publication.origin,
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
