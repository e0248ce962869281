"""The answer that gives the headline of one original document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from embedding.kernel.errors import SnapshotError
from embedding.snapshots.evidence import Evidence
from embedding.web.api import as_answer
from embedding.web.site import PageSite, Site

_WORDS = 12
_LOOKED_AT = 1000
"""Documents of a word and day among which one is looked for."""


routes = APIRouter(prefix="/api")


@routes.get("/headline")
async def _headline(
    site: PageSite,
    request: Request,
    u: str,
    d: str,
    w: Annotated[list[str], Query(max_length=_WORDS)],
) -> Response:
    if site.headlines is None:
        raise HTTPException(404)
    document = await asyncio.to_thread(_document, site, u, d, w)
    if document is None:
        raise HTTPException(404, "this address is not among the documents of that word.")
    t = site.words(request)
    try:
        found = await site.headlines.read(document)
    except ModuleNotFoundError:
        return as_answer({"state": "none", "headline": "", "said": t("headline_extra")})
    why = "" if found.state == "read" else t(f"headline_{found.state}")
    return as_answer({"state": found.state, "headline": found.text, "said": why})


def _document(site: Site, url: str, day: str, words: Sequence[str]) -> Evidence | None:
    """The document, if it is one that the page shows: nobody has other addresses fetched."""
    try:
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
        end = start + timedelta(days=1)
        for word in words:
            found = site.answers.evidence(word, start.isoformat(), end.isoformat(), _LOOKED_AT)
            for one in found:
                if one.url == url:
                    return one
    except (ValueError, OverflowError, SnapshotError):
        return None
    return None
