"""The process that extracts: framed JSON in on stdin, framed JSON out on stdout.

A frame is two big-endian uint32 lengths, that many bytes of JSON, and that many bytes as they are
(the page). The process ends with its parent, because its stdin then ends. Run as
`python -m embedding.crawl.extract_worker`.
"""

from __future__ import annotations

import base64
import json
import signal
import struct
import sys
from datetime import datetime
from typing import Any, BinaryIO

from embedding.crawl.extract import Extracted, read_page
from embedding.errors import FetchError

HEADER = struct.Struct(">II")


def pack(value: dict[str, Any], page: bytes = b"") -> bytes:
    """One frame. Unpaired surrogates, which broken pages hold, survive."""
    told = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"".join((HEADER.pack(len(told), len(page)), told, page))


def unpack(told: bytes) -> dict[str, Any]:
    """The JSON of a frame."""
    value: dict[str, Any] = json.loads(told.decode("utf-8", "surrogatepass"))
    return value


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


def answer(request: dict[str, Any], page: bytes) -> dict[str, Any]:
    """Extract one page; a page that cannot be read is answered with its reason."""
    url = str(request["url"])
    try:
        return encode(read_page(page, request["type"], url, request["zone"]))
    except FetchError as error:
        return {"reason": error.reason, "message": str(error)}
    except Exception as error:  # noqa: BLE001  (whatever a page provokes is that page's failure)
        return {"reason": "parse", "message": f"{url}: {type(error).__name__} while reading."}


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer frames until the input ends."""
    while True:
        header = incoming.read(HEADER.size)
        if len(header) < HEADER.size:
            return
        lengths = HEADER.unpack(header)
        told, page = (incoming.read(length) for length in lengths)
        if (len(told), len(page)) != lengths:
            return
        outgoing.write(pack(answer(unpack(told), page)))
        outgoing.flush()


def main() -> None:
    """Serve stdin and stdout; Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outgoing = sys.stdout.buffer
    # A stray print of a library must not break the frames.
    sys.stdout = sys.stderr
    serve(sys.stdin.buffer, outgoing)


if __name__ == "__main__":
    main()
