"""The JSON answers of what is compared: words, windows, sources, an axis, maps, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.params import Depends
from starlette.responses import Response

from embedding.kernel.errors import InputError
from embedding.snapshots.store import LATEST
from embedding.trends import storage, table
from embedding.trends.contrast import SourceContrast
from embedding.trends.plain import to_plain
from embedding.web.answer_models import (
    CompareAnswer,
    EvidenceAnswer,
    SourcesAnswer,
)
from embedding.web.api import (
    Describe,
    IdQuery,
    LimitQuery,
    WordQuery,
    as_answer,
    as_record,
    as_text,
)
from embedding.web.axisview import axis_view, sentence_of
from embedding.web.findings import change_sentences
from embedding.web.site import Site
from embedding.web.wordview import sources_of

FirstQuery = Annotated[str, Query(description="The first.")]
SecondQuery = Annotated[str, Query(description="The second.")]


def comparing_routes(
    site: Site, dependencies: Sequence[Depends], prefix: str, answers: Describe
) -> APIRouter:
    """These routes; `dependencies` guard each of them, `answers` says what they give."""
    routes = APIRouter(prefix=prefix, dependencies=list(dependencies), responses=answers())

    @routes.get("/compare", summary="Two words over time", responses=answers(CompareAnswer))
    def compare(request: Request, a: FirstQuery, b: SecondQuery) -> Response:
        """The histories of two words, and how near they stand in each window."""
        return as_record(site.programs.compare(a, b, site.reading(request)))

    @routes.get("/between", summary="Any two windows")
    def between(then: FirstQuery, now: SecondQuery) -> Response:
        """The report of a window against any earlier one, which need not be its neighbour."""
        return as_text(storage.dumps(site.programs.between(then, now)))

    @routes.get("/sources", summary="The sources of a window", responses=answers(SourcesAnswer))
    def sources(id: IdQuery = LATEST) -> Response:
        """What each source brought, and how well the model serves it."""
        return as_record(site.programs.sources(id))

    @routes.get("/contrast", summary="Two sources of a window", responses=answers(SourceContrast))
    def contrast(
        a: FirstQuery,
        b: SecondQuery,
        id: IdQuery = LATEST,
        limit: LimitQuery = None,
    ) -> Response:
        """Words that the two sources use differently, surest first."""
        return as_text(table.as_json(site.programs.contrast(a, b, id, limit)))

    @routes.get(
        "/evidence", summary="Documents that hold a word", responses=answers(EvidenceAnswer)
    )
    def evidence(
        w: WordQuery,
        id: IdQuery = LATEST,
        n: Annotated[int, Query(ge=1, le=200, description="Documents at most.")] = 20,
    ) -> Response:
        """Addresses of documents of a window, newest first; never their text."""
        return as_record(site.programs.evidence(w, id, n))

    @routes.get("/axis", summary="A word between two ends")
    def axis(request: Request, w: WordQuery, name: str) -> Response:
        """Where a word stands on one of the page's axes, by source and over time."""
        t = site.words(request)
        try:
            found = site.answers.axis(w, name)[1]
            history = site.reader.history(w)
            labels = [point.label for point in history.points]
            return as_answer(axis_view(name, found, t, sources_of(history), labels))
        except InputError as error:
            return as_answer({"error": str(error), "sentence": sentence_of(error, t)}, 400)

    @routes.get("/since", summary="When a word changed")
    def since(request: Request, w: WordQuery) -> Response:
        """The window since which a word is used differently, if one stands out."""
        found = site.programs.change(w)
        text, about = change_sentences(found, site.words(request))
        return as_answer({**to_plain(found), "text": text, "about": about})

    @routes.get("/bias", summary="Whom the model serves worst")
    def bias(id: IdQuery = LATEST) -> Response:
        """Losses by source, and weights of the sources that would even them."""
        return as_text(table.as_json(site.answers.bias(site.reader.open(id).id)))

    @routes.get("/map", summary="A word's map")
    def neighbour_map(w: WordQuery) -> Response:
        """A word and its neighbours in two dimensions through all windows."""
        return as_text(table.as_json(site.answers.map(w)))

    return routes
