"""The JSON answers of what is compared: positions on an axis, sources, maps, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.params import Depends
from starlette.responses import Response

from embedding.kernel.errors import InputError
from embedding.snapshots.store import LATEST
from embedding.trends import table
from embedding.trends.plain import to_plain
from embedding.web.api import API_WAIT_S, as_answer, as_text, not_yet
from embedding.web.axisview import axis_view, said
from embedding.web.changeview import change_view
from embedding.web.site import Site
from embedding.web.wordview import sources_of


def comparing_routes(site: Site, dependencies: Sequence[Depends]) -> APIRouter:
    """These routes; `dependencies` guard each of them."""
    routes = APIRouter(prefix="/api", dependencies=list(dependencies))

    @routes.get("/axis")
    def axis(request: Request, w: str, name: str) -> Response:
        t = site.words(request)
        try:
            found = site.answers.axis(w, name)[1]
            return as_answer(axis_view(found, t, sources_of(site.reader.history(w))))
        except InputError as error:
            return as_answer({"error": str(error), "sentence": said(error, t)}, 400)

    @routes.get("/evidence")
    def evidence(w: str, id: str = LATEST, n: Annotated[int, Query(ge=1, le=200)] = 20) -> Response:  # noqa: A002
        return as_answer(_evidence(site, w, id, n))

    @routes.get("/contrast")
    def contrast(a: str, b: str, id: str = LATEST) -> Response:  # noqa: A002
        found = site.answers.contrast(a, b, site.reader.open(id).id, API_WAIT_S)
        if found is None:
            raise not_yet()
        return as_text(table.as_json(found))

    @routes.get("/since")
    def since(request: Request, w: str) -> Response:
        found = site.answers.change(w, API_WAIT_S)
        if found is None:
            raise not_yet()
        said = change_view(found, site.words(request))
        return as_answer({**to_plain(found), "text": said.text, "about": said.about})

    @routes.get("/bias")
    def bias(id: str = LATEST) -> Response:  # noqa: A002
        return as_text(table.as_json(site.answers.bias(site.reader.open(id).id)))

    @routes.get("/map")
    def neighbour_map(w: str) -> Response:
        return as_text(table.as_json(site.answers.map(w)))

    return routes


def _evidence(site: Site, word: str, id: str, n: int) -> dict[str, Any]:  # noqa: A002
    window = site.reader.open(id).manifest.window
    found = site.answers.evidence(word, window.start.isoformat(), window.end.isoformat(), n)
    rows = [
        {"url": one.url, "source": one.source, "published": one.published.isoformat()}
        for one in found
    ]
    return {"word": word, "window": window.label, "documents": rows}
