"""The JSON answers under api/v1: read only, described by OpenAPI, the same that the page shows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response

from embedding.ask.answers import Answers, UnknownWordError
from embedding.ask.questions import (
    QUESTIONS,
    AxisQuestion,
    ChangeQuestion,
    CompareQuestion,
    EvidenceAnswer,
    Question,
    RankingAnswer,
    RankingQuestion,
    ScoresAnswer,
    SnapshotsQuestion,
    SourcesAnswer,
    StoriesQuestion,
    WindowsQuestion,
    WordQuestion,
)
from embedding.kernel.errors import InputError, SnapshotError
from embedding.show.columns import as_json
from embedding.snapshots.evidence import Evidence
from embedding.trends import storage
from embedding.trends.contrast import SourceContrast
from embedding.trends.history import WordHistory
from embedding.trends.plain import to_plain
from embedding.trends.rows import RANKINGS, ROLES
from embedding.web.answering import (
    API_WAIT_S,
    CompareAnswer,
    ErrorAnswer,
    Reading,
    StoriesAnswer,
    WindowsAnswer,
)
from embedding.web.site import AskedPage, PageRequest, route_of
from embedding.web.wordview import axis_view, sentence_of, sources_of

PREFIXES = ("/api/v1", "/api")
"""The address of this version, and the one that the page's own scripts and older programs use."""
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
_READ: dict[type, Callable[[Reading, Any], object]] = {
    StoriesQuestion: Reading.stories,
    WindowsQuestion: Reading.windows,
    CompareQuestion: Reading.compare,
    ChangeQuestion: Reading.since,
    SnapshotsQuestion: lambda _, listing: {
        "snapshots": [{**ref.to_dict(), "uri": None} for ref in listing.refs],
        "broken": sorted(listing.broken),
    },
}
"""Answers that a program gets with the page's sentences and addresses, or without the store's."""


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
    model = ANSWERS.get(path)
    return answers | ({} if model is None else {200: {"model": model, "description": "Found."}})


def as_answer(value: Any, status: int = 200) -> Response:
    """A value or a record as JSON, figures rounded as in reports."""
    return as_text(json.dumps(to_plain(value), ensure_ascii=False, sort_keys=True), status)


def as_text(text: str, status: int = 200) -> Response:
    """A text that is JSON."""
    return Response(text, status, media_type="application/json")


def _record(page: PageRequest, asked: Question[Any]) -> Response:
    answer = asked.answer(page.answers, API_WAIT_S)
    read = _READ.get(type(asked))
    return as_answer(answer if read is None else read(page.reading, answer))


def _report(page: PageRequest, asked: Question[Any]) -> Response:
    return as_text(storage.dumps(asked.answer(page.answers, API_WAIT_S)))


def _ranking(page: PageRequest, asked: Question[Any]) -> Response:
    return as_text(as_json(asked.answer(page.answers, API_WAIT_S)))


def _word(page: PageRequest, asked: Question[Any]) -> Response:
    try:
        return _record(page, asked)
    except UnknownWordError as error:
        return as_answer({"error": "no snapshot holds this word.", "nearest": error.nearest}, 404)


def _axis(page: PageRequest, asked: AxisQuestion) -> Response:
    try:
        axis = asked.answer(page.answers, API_WAIT_S)
        history = page.answers.history(asked.word)
        labels = [point.label for point in history.points]
        return as_answer(axis_view(asked.name, axis, page.t, sources_of(history), labels))
    except InputError as error:
        return as_answer({"error": str(error), "sentence": sentence_of(error, page.t)}, 400)


api_routes = APIRouter()
_SHOWN: dict[str, Any] = {"report": _report, "between": _report, "word": _word, "axis": _axis}
"""Answers that are not simply a record as JSON."""
_OPERATIONS = {"map": "neighbour_map", "word": "word_by_query"}
"""Names in OpenAPI, where not those of the questions."""
for _name, _question in QUESTIONS.items():
    api_routes.add_api_route(
        f"/{_name}",
        route_of(_question, _OPERATIONS.get(_name, _name), _SHOWN.get(_name, _record)),
        summary=_question.title(),
        description=_question.about(),
    )
for _name in RANKINGS:
    api_routes.add_api_route(
        f"/{_name}",
        route_of(RankingQuestion, "ranking", _ranking, ranking=_name),
        summary=f"Words that are {ROLES[_name]}",
        description=RankingQuestion.about(),
    )
_WORD_PATH = "/word/{word:path}"
api_routes.add_api_route(
    _WORD_PATH,
    route_of(WordQuestion, "word", _word, _WORD_PATH),
    summary=WordQuestion.title(),
    description=WordQuestion.about(),
)


@api_routes.get("/stream", summary="The stream as it is now")
def stream(page: AskedPage) -> Response:
    """Words a second, lag and sources, as the parameter server says them."""
    return as_answer(page.site.stream.read())


unknown_routes = APIRouter(include_in_schema=False)
"""What is none of the answers; guarded as they are, so that nobody learns which there are."""


@unknown_routes.get("/{name:path}")
def _unknown(name: str) -> Response:
    raise HTTPException(404, f"{name[:40]}: there is no such answer.")


_WORDS = 12
_LOOKED_AT = 1000
"""Documents of a word and day among which one is looked for."""


headline_routes = APIRouter(prefix="/api")


@headline_routes.get("/headline")
async def _headline(
    page: AskedPage, u: str, d: str, w: Annotated[list[str], Query(max_length=_WORDS)]
) -> Response:
    headlines = page.site.headlines
    if headlines is None:
        raise HTTPException(404)
    document = await asyncio.to_thread(_document, page.answers, u, d, w)
    if document is None:
        raise HTTPException(404, "this address is not among the documents of that word.")
    try:
        headline = await headlines.read(document)
    except ModuleNotFoundError:
        return as_answer({"state": "none", "headline": "", "said": page.t("headline_extra")})
    why = "" if headline.state == "read" else page.t(f"headline_{headline.state}")
    return as_answer({"state": headline.state, "headline": headline.text, "said": why})


def _document(answers: Answers, url: str, day: str, words: Sequence[str]) -> Evidence | None:
    """The document, if it is one that the page shows: nobody has other addresses fetched."""
    try:
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
        end = start + timedelta(days=1)
        for word in words:
            times = start.isoformat(), end.isoformat()
            for document in answers.evidence(word, *times, _LOOKED_AT):
                if document.url == url:
                    return document
    except (ValueError, OverflowError, SnapshotError):
        return None
    return None
