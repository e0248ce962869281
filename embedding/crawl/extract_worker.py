"""The process that reads pages and listings: bytes in, what they hold out (frames: `children.py`).

Run as `python -m embedding.crawl.extract_worker`.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from embedding.crawl.extract import Extracted, read_page
from embedding.kernel.children import serve
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, ListingPage, Reference
from embedding.sources.config import SourceConfig


def encode(found: Extracted) -> dict[str, Any]:
    """`found` as JSON."""
    return {
        "text": found.text,
        "title": found.title,
        "published_at": found.published_at.isoformat() if found.published_at else None,
        "canonical": found.canonical,
        "digest": found.digest,
        "signature": base64.b64encode(found.signature).decode("ascii"),
        "authors": found.authors,
        "dated_by": found.dated_by,
        "shows": found.shows,
    }


def decode(value: dict[str, Any]) -> Extracted:
    """Inverse of `encode`; raises the FetchError that the worker sent instead."""
    if "reason" in value:
        raise FetchError(value["reason"], value["message"])
    when = value["published_at"]
    return Extracted(
        text=value["text"],
        title=value["title"],
        published_at=datetime.fromisoformat(when) if when else None,
        canonical=value["canonical"],
        digest=value["digest"],
        signature=base64.b64decode(value["signature"]),
        authors=tuple(value["authors"]),
        dated_by=value["dated_by"],
        shows=value["shows"],
    )


def ask_listing(source: SourceConfig, page: FetchedPage) -> tuple[dict[str, Any], bytes]:
    """The frame that has a listing read; the source's secrets stay here."""
    shown = source.model_dump(mode="json", exclude_defaults=True, exclude={"cookies", "proxy"})
    # What is packed in itself has no text yet.
    body = page.text.encode("utf-8", "surrogatepass") if page.text else page.body
    header = {
        "source": shown,
        "url": page.url,
        "decoded": bool(page.text),
        "read_at": page.read_at and page.read_at.isoformat(),
        "encoding": page.encoding,
    }
    return header, body


def decode_listing(value: dict[str, Any]) -> ListingPage:
    """The answer to it; raises the FetchError that the worker sent instead."""
    if "reason" in value:
        raise FetchError(value["reason"], value["message"])
    references, children = (
        tuple(
            Reference(url, when and datetime.fromisoformat(when), title, tuple(authors), changed)
            for url, when, title, authors, changed in value[name]
        )
        for name in ("references", "children")
    )
    return ListingPage(references, value["next"], children)


def _listing(request: dict[str, Any], body: bytes) -> dict[str, Any]:
    from embedding.sources.kinds import read_listing  # a feed's libraries, where one is read

    text = body.decode("utf-8", "surrogatepass") if request["decoded"] else ""
    source = SourceConfig.model_validate(request["source"])
    page = FetchedPage(
        request["url"], text, body, {}, read_at=_read_at(request), encoding=request["encoding"]
    )
    found = read_listing(source, page)
    rows = {
        name: [
            [r.url, r.published_at and r.published_at.isoformat(), r.title, r.authors, r.is_lastmod]
            for r in several
        ]
        for name, several in (("references", found.references), ("children", found.children))
    }
    return {**rows, "next": found.next}


def _read_at(request: dict[str, Any]) -> datetime | None:
    return datetime.fromisoformat(request["read_at"]) if request["read_at"] else None


def answer(request: dict[str, Any], page: bytes) -> tuple[dict[str, Any], bytes]:
    """Read one page or listing; what cannot be read is answered with its reason."""
    url = str(request["url"])
    try:
        if "source" in request:
            return _listing(request, page), b""
        zone, authors = request["zone"], request["authors"]
        found = read_page(page, request["type"], url, zone, authors, _read_at(request))
        return encode(found), b""
    except FetchError as error:
        return {"reason": error.reason, "message": str(error)}, b""
    except Exception as error:  # noqa: BLE001  (whatever a page provokes is that page's failure)
        return {"reason": "parse", "message": f"{url}: {type(error).__name__} while reading."}, b""


if __name__ == "__main__":
    serve(answer)
