"""The process that reads pages and listings: bytes in, what they hold out (frames: `children.py`).

Run as `python -m embedding.crawl.extract_worker`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from embedding.crawl.extract import Extracted, read_page
from embedding.kernel.children import Reply, serve
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, ListingPage, Reference
from embedding.sources.config import SourceConfig


def encode(extracted: Extracted) -> Reply:
    """A frame that holds it."""
    return {**vars(extracted), "signature": ""}, extracted.signature


def decode(value: dict[str, Any], signature: bytes) -> Extracted:
    """Inverse of `encode`; raises the FetchError that the worker sent instead."""
    if "reason" in value:
        raise FetchError(value["reason"], value["message"])
    return Extracted(**{**_restored(value), "signature": signature})


def _restored(value: dict[str, Any]) -> dict[str, Any]:
    """With what JSON has no words for."""
    published, authors = _time(value["published_at"]), tuple(value["authors"])
    return {**value, "published_at": published, "authors": authors}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def ask_listing(source: SourceConfig, page: FetchedPage) -> Reply:
    """The frame that has a listing read; the source's secrets stay here."""
    shown = source.model_dump(mode="json", exclude_defaults=True, exclude={"cookies", "proxy"})
    # What is packed in itself has no text yet.
    body = page.text.encode("utf-8", "surrogatepass") if page.text else page.body
    header = {
        "source": shown,
        "url": page.url,
        "decoded": bool(page.text),
        "read_at": page.read_at,
        "encoding": page.encoding,
    }
    return header, body


def decode_listing(value: dict[str, Any]) -> ListingPage:
    """The answer to it; raises the FetchError that the worker sent instead."""
    if "reason" in value:
        raise FetchError(value["reason"], value["message"])
    references, children = (
        tuple(Reference(**_restored(reference)) for reference in value[name])
        for name in ("references", "children")
    )
    return ListingPage(references, value["next"], children)


def _listing(request: dict[str, Any], body: bytes) -> dict[str, Any]:
    from embedding.sources.kinds import read_listing  # a feed's libraries, where one is read

    text = body.decode("utf-8", "surrogatepass") if request["decoded"] else ""
    source = SourceConfig.model_validate(request["source"])
    read_at, encoding = _time(request["read_at"]), request["encoding"]
    page = FetchedPage(request["url"], text, body, {}, read_at=read_at, encoding=encoding)
    listing = read_listing(source, page)
    rows = {name: list(map(vars, getattr(listing, name))) for name in ("references", "children")}
    return {**rows, "next": listing.next}


def answer(request: dict[str, Any], page: bytes) -> Reply:
    """Read one page or listing; what cannot be read is answered with its reason."""
    url = str(request["url"])
    try:
        if "source" in request:
            return _listing(request, page), b""
        zone, authors, read_at = request["zone"], request["authors"], _time(request["read_at"])
        return encode(read_page(page, request["type"], url, zone, authors, read_at))
    except FetchError as error:
        return {"reason": error.reason, "message": str(error)}, b""
    except Exception as error:  # noqa: BLE001  (whatever a page provokes is that page's failure)
        return {"reason": "parse", "message": f"{url}: {type(error).__name__} while reading."}, b""


if __name__ == "__main__":
    serve(answer)
