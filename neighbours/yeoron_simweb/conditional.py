"""Answers with validators (ETag, Last-Modified) and 304 where nothing changed (RFC 9110 §13)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from starlette.requests import Request
from starlette.responses import Response


def http_date(moment: float) -> str:
    """Unix seconds as an HTTP date."""
    return format_datetime(datetime.fromtimestamp(int(moment), UTC), usegmt=True)


def unchanged(request: Request, etag: str, modified: float) -> bool:
    """Whether the client's copy is current; If-None-Match goes before If-Modified-Since."""
    match = request.headers.get("if-none-match")
    if match is not None:
        tags = {tag.strip().removeprefix("W/") for tag in match.split(",")}
        return "*" in tags or etag in tags
    since = request.headers.get("if-modified-since")
    if since is None:
        return False
    try:
        return int(modified) <= parsedate_to_datetime(since).timestamp()
    except (ValueError, TypeError, OverflowError):
        return False


def validators(etag: str, modified: float) -> dict[str, str]:
    """The headers ETag and Last-Modified."""
    return {"ETag": etag, "Last-Modified": http_date(modified), "Cache-Control": "no-cache"}


def not_modified(etag: str, modified: float) -> Response:
    """304 with its validators."""
    return Response(status_code=304, headers=validators(etag, modified))
