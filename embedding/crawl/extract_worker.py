"""The process that extracts: a page in, what it holds out (frames: `children.py`).

Run as `python -m embedding.crawl.extract_worker`.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from embedding.children import serve
from embedding.crawl.extract import Extracted, read_page
from embedding.errors import FetchError


def encode(found: Extracted) -> dict[str, Any]:
    """`found` as JSON."""
    return {
        "text": found.text,
        "title": found.title,
        "published_at": found.published_at.isoformat() if found.published_at else None,
        "canonical": found.canonical,
        "digest": found.digest,
        "signature": base64.b64encode(found.signature).decode("ascii"),
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
    )


def answer(request: dict[str, Any], page: bytes) -> tuple[dict[str, Any], bytes]:
    """Extract one page; a page that cannot be read is answered with its reason."""
    url = str(request["url"])
    try:
        return encode(read_page(page, request["type"], url, request["zone"])), b""
    except FetchError as error:
        return {"reason": error.reason, "message": str(error)}, b""
    except Exception as error:  # noqa: BLE001  (whatever a page provokes is that page's failure)
        return {"reason": "parse", "message": f"{url}: {type(error).__name__} while reading."}, b""


if __name__ == "__main__":
    serve(answer)
