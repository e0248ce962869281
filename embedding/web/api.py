"""The JSON answers under api/v1: read only, described by OpenAPI, the same that the page shows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from embedding.kernel.errors import InputError, SnapshotError
from embedding.snapshots.evidence import Evidence
from embedding.snapshots.store import LATEST
from embedding.trends import storage, table
from embedding.trends.contrast import SourceContrast
from embedding.trends.history import WordHistory
from embedding.trends.plain import to_plain
from embedding.trends.rows import RANKINGS, ROLES
from embedding.web.answering import (
    API_WAIT_S,
    CompareAnswer,
    ErrorAnswer,
    EvidenceAnswer,
    RankingAnswer,
    ScoresAnswer,
    SourcesAnswer,
    StoriesAnswer,
    WindowsAnswer,
)
from embedding.web.findings import change_sentences
from embedding.web.site import PageSite, Site
from embedding.web.wordview import axis_view, sentence_of, sources_of

PREFIXES = ("/api/v1", "/api")
"""The address of this version, and the one that the page's own scripts and older programs use."""
LimitQuery = Annotated[int | None, Query(ge=1, le=10_000, description="Rows at most.")]
IdQuery = Annotated[
    str, Query(description="A window (`2020-03`), the id of a snapshot, or `latest`.")
]
WordQuery = Annotated[str, Query(description="The word.")]
PageQuery = Annotated[int, Query(ge=1, le=10_000, description="Rows at most.")]
OffsetQuery = Annotated[int, Query(ge=0, le=100_000_000, description="Rows to pass over.")]


ANSWERS: dict[str, type] = {
    "/stories": StoriesAnswer,
    "/word": WordHistory,
    "/word/{word:path}": WordHistory,
    "/windows": WindowsAnswer,
    "/scores": ScoresAnswer,
    "/compare": CompareAnswer,
    "/sources": SourcesAnswer,
    "/contrast": SourceContrast,
    "/evidence": EvidenceAnswer,
    **{f"/{name}": RankingAnswer for name in RANKINGS},
}
"""Records of answers by their routes. Only the description has them: FastAPI makes a schema of each
for half a second in all."""


def responses_of(path: str) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of a route's answers."""
    sentence = {
        400: "The question cannot be answered.",
        401: "No token, or one that is not accepted.",
        404: "There is no such window, word or source.",
        429: "Too many questions: ask again after `Retry-After` seconds.",
        503: "The answer is being computed: ask again after `Retry-After` seconds.",
    }
    answers: dict[int | str, dict[str, Any]] = {
        code: {"model": ErrorAnswer, "description": text} for code, text in sentence.items()
    }
    found = ANSWERS.get(path)
    return answers | ({} if found is None else {200: {"model": found, "description": "Found."}})


api_routes = APIRouter()


@api_routes.get("/report", summary="The whole report of a window")
def report(site: PageSite, id: IdQuery = LATEST) -> Response:
    """All rankings, stories, notes and figures of one window."""
    return as_text(storage.dumps(site.programs.report(id)))


@api_routes.get("/stories", summary="What happened in a window")
def stories(
    site: PageSite, request: Request, id: IdQuery = LATEST, limit: LimitQuery = None
) -> Response:
    """Words that changed together, surest first: sentences, figures, addresses of documents.

    The language of the sentences is that of `lang` or `Accept-Language`.
    """
    return as_answer(site.programs.stories(id, limit, site.reading(request)))


@api_routes.get("/word/{word:path}", summary="One word over time")
def word(site: PageSite, word: str) -> Response:
    """A word through all windows: how often each source used it, how far it moved, what it is
    near.
    """
    return _word(site, word)


@api_routes.get("/word", summary="One word over time, by query")
def word_by_query(site: PageSite, w: WordQuery) -> Response:
    """The same for a word that no path can hold."""
    return _word(site, w)


@api_routes.get("/windows", summary="All windows")
def windows(site: PageSite, request: Request) -> Response:
    """Each window with what was read in it, and how many words changed, where it is known."""
    return as_answer(site.programs.windows(site.reading(request)))


@api_routes.get("/scores", summary="Every word that was compared")
def scores(
    site: PageSite, id: IdQuery = LATEST, offset: OffsetQuery = 0, limit: PageQuery = 1000
) -> Response:
    """How far each word moved and how sure that is, a part at a time."""
    return as_answer(site.programs.scores(id, offset, limit))


@api_routes.get("/snapshots", summary="All snapshots")
def snapshots(site: PageSite) -> Response:
    """The snapshots that can be read, and the ids of those that cannot."""
    listing = site.reader.listing()
    rows = [{**ref.to_dict(), "uri": None} for ref in listing.refs]
    return as_answer({"snapshots": rows, "broken": sorted(listing.broken)})


@api_routes.get("/suggest", summary="Words that begin so")
def suggest(site: PageSite, q: str = "", n: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
    """Words of the latest window that begin with `q` or hold it, most frequent first."""
    if not site.reader.listing().refs:
        return as_answer({"query": q, "words": []})
    return as_answer({"query": q, "words": site.reader.vocabulary().suggest(q, n)})


@api_routes.get("/stream", summary="The stream as it is now")
def stream(site: PageSite) -> Response:
    """Words a second, lag and sources, as the parameter server says them."""
    return as_answer(site.stream.read())


unknown_routes = APIRouter(include_in_schema=False)
"""What is none of the answers; guarded as they are, so that nobody learns which there are."""


@unknown_routes.get("/{name:path}")
def _unknown(name: str) -> Response:
    raise HTTPException(404, f"{name[:40]}: there is no such answer.")


def _add_ranking(name: str) -> None:
    def ranking(site: PageSite, id: IdQuery = LATEST, limit: LimitQuery = None) -> Response:
        return as_text(table.ranking_json(site.programs.report(id), name, limit))

    api_routes.add_api_route(
        f"/{name}",
        ranking,
        name=name,
        summary=f"Words that are {ROLES[name]}",
        description="Surest first; `significant` marks those that are findings.",
    )


for _name in RANKINGS:
    _add_ranking(_name)


def _word(site: Site, word: str) -> Response:
    history = site.reader.history(word)
    if history.known:
        return as_answer(history)
    nearest = site.reader.vocabulary().nearest_spellings(word)
    return as_answer({"error": "no snapshot holds this word.", "nearest": nearest}, 404)


def as_answer(value: Any, status: int = 200) -> Response:
    """A value or a record as JSON, figures rounded as in reports."""
    return as_text(json.dumps(to_plain(value), ensure_ascii=False, sort_keys=True), status)


def as_text(text: str, status: int = 200) -> Response:
    """A text that is JSON."""
    return Response(text, status, media_type="application/json")


_WORDS = 12
_LOOKED_AT = 1000
"""Documents of a word and day among which one is looked for."""


headline_routes = APIRouter(prefix="/api")


@headline_routes.get("/headline")
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


FirstQuery = Annotated[str, Query(description="The first.")]
SecondQuery = Annotated[str, Query(description="The second.")]


@api_routes.get("/compare", summary="Two words over time")
def compare(site: PageSite, request: Request, a: FirstQuery, b: SecondQuery) -> Response:
    """The histories of two words, and how near they stand in each window."""
    return as_answer(site.programs.compare(a, b, site.reading(request)))


@api_routes.get("/between", summary="Any two windows")
def between(site: PageSite, then: FirstQuery, now: SecondQuery) -> Response:
    """The report of a window against any earlier one, which need not be its neighbour."""
    ids = (site.reader.open(then).id, site.reader.open(now).id)
    return as_text(storage.dumps(site.answers.between(*ids, API_WAIT_S)))


@api_routes.get("/sources", summary="The sources of a window")
def sources(site: PageSite, id: IdQuery = LATEST) -> Response:
    """What each source brought, and how well the model serves it."""
    return as_answer(site.programs.sources(id))


@api_routes.get("/contrast", summary="Two sources of a window")
def contrast(
    site: PageSite,
    a: FirstQuery,
    b: SecondQuery,
    id: IdQuery = LATEST,
    limit: LimitQuery = None,
) -> Response:
    """Words that the two sources use differently, surest first."""
    return as_answer(site.programs.contrast(a, b, id, limit))


@api_routes.get("/evidence", summary="Documents that hold a word")
def evidence(
    site: PageSite,
    w: WordQuery,
    id: IdQuery = LATEST,
    n: Annotated[int, Query(ge=1, le=200, description="Documents at most.")] = 20,
) -> Response:
    """Addresses of documents of a window, newest first; never their text."""
    return as_answer(site.programs.evidence(w, id, n))


@api_routes.get("/axis", summary="A word between two ends")
def axis(site: PageSite, request: Request, w: WordQuery, name: str) -> Response:
    """Where a word stands on one of the page's axes, by source and over time."""
    t = site.words(request)
    try:
        found = site.answers.axis(w, name)
        history = site.reader.history(w)
        labels = [point.label for point in history.points]
        return as_answer(axis_view(name, found, t, sources_of(history), labels))
    except InputError as error:
        return as_answer({"error": str(error), "sentence": sentence_of(error, t)}, 400)


@api_routes.get("/since", summary="When a word changed")
def since(site: PageSite, request: Request, w: WordQuery) -> Response:
    """The window since which a word is used differently, if one stands out."""
    found = site.answers.change(w, API_WAIT_S)
    text, about = change_sentences(found, site.words(request))
    return as_answer({**to_plain(found), "text": text, "about": about})


@api_routes.get("/bias", summary="Whom the model serves worst")
def bias(site: PageSite, id: IdQuery = LATEST) -> Response:
    """Losses by source, and weights of the sources that would even them."""
    return as_answer(site.answers.bias(site.reader.open(id).id))


@api_routes.get("/map", summary="A word's map")
def neighbour_map(site: PageSite, w: WordQuery) -> Response:
    """A word and its neighbours in two dimensions through all windows."""
    return as_answer(site.answers.map(w))
