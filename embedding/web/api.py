"""The JSON answers under api/: reports, words, snapshots, suggestions, the live stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.params import Depends
from starlette.exceptions import HTTPException
from starlette.responses import Response

from embedding.snapshots.store import LATEST
from embedding.trends import storage, table
from embedding.trends.plain import to_plain
from embedding.trends.rows import RANKINGS, TrendReport
from embedding.web.site import Site

API_WAIT_S = 60.0
_RETRY_S = 3
LimitQuery = Annotated[int | None, Query(ge=1, le=10_000)]


def api_routes(site: Site, dependencies: Sequence[Depends]) -> APIRouter:
    """All JSON routes; `dependencies` guard each of them."""
    routes = APIRouter(prefix="/api", dependencies=list(dependencies))

    @routes.get("/report")
    def report(id: str = LATEST) -> Response:  # noqa: A002
        return as_text(storage.dumps(_report(site, id)))

    @routes.get("/stories")
    def stories(id: str = LATEST, limit: LimitQuery = None) -> Response:  # noqa: A002
        found = _report(site, id)
        head = {"snapshot": found.snapshot, "compared_with": found.compared_with}
        return as_answer(to_plain({**head, "stories": found.stories[:limit]}))

    @routes.get("/word/{word:path}")
    def word(word: str) -> Response:
        return _word(site, word)

    @routes.get("/word")
    def word_by_query(w: str) -> Response:
        return _word(site, w)

    @routes.get("/snapshots")
    def snapshots() -> Response:
        listing = site.reader.listing()
        rows = [{**ref.to_dict(), "uri": None} for ref in listing.refs]
        return as_answer({"snapshots": rows, "broken": sorted(listing.broken)})

    @routes.get("/suggest")
    def suggest(q: str = "", n: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
        if not site.reader.listing().refs:
            return as_answer({"query": q, "words": []})
        return as_answer({"query": q, "words": site.reader.vocabulary().suggest(q, n)})

    @routes.get("/stream")
    def stream() -> Response:
        return as_answer(site.stream.read())

    @routes.get("/{ranking}")
    def ranking(ranking: str, id: str = LATEST, limit: LimitQuery = None) -> Response:  # noqa: A002
        if ranking not in RANKINGS:
            raise HTTPException(404, f"api/{ranking[:40]}: there is no such answer.")
        return as_text(table.ranking_json(_report(site, id), ranking, limit))

    return routes


def _report(site: Site, id: str) -> TrendReport:  # noqa: A002
    known = site.reader.open(id).id
    report = site.reader.report(known, wait_s=API_WAIT_S)
    if report is None:
        raise not_yet()
    return report


def not_yet() -> HTTPException:
    """The answer to ask again for."""
    return HTTPException(
        503, "the answer is being computed: ask again.", headers={"Retry-After": str(_RETRY_S)}
    )


def _word(site: Site, word: str) -> Response:
    history = site.reader.history(word)
    if history.known:
        return as_text(table.word_json(history))
    nearest = site.reader.vocabulary().nearest_spellings(word)
    return as_answer({"error": "no snapshot holds this word.", "nearest": nearest}, 404)


def as_answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return as_text(json.dumps(value, ensure_ascii=False, sort_keys=True), status)


def as_text(text: str, status: int = 200) -> Response:
    """A text that is JSON."""
    return Response(text, status, media_type="application/json")
