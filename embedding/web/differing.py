"""What a window's sources disagree on: in its brief, or after it if that takes long."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.params import Depends
from starlette.responses import HTMLResponse, Response

from embedding.kernel.errors import InputError, SnapshotError
from embedding.trends.disagreement import Disagreement
from embedding.trends.rows import TrendReport
from embedding.web import brief
from embedding.web.plain import plain_disagreement
from embedding.web.site import Site

SOON_S = 0.3
"""A brief waits for it so long."""
LATER_S = 10.0
"""The script of a brief without it asks again behind so long."""


def differing_routes(site: Site, dependencies: Sequence[Depends]) -> APIRouter:
    """The section alone; `dependencies` guard it."""
    routes = APIRouter(dependencies=list(dependencies), default_response_class=HTMLResponse)

    @routes.get("/window/{id}/disagreement")
    def disagreement(request: Request, id: str) -> Response:  # noqa: A002
        return _disagreement(site, request, id)

    return routes


def compared(
    site: Site, request: Request, report: TrendReport, wait_s: float
) -> tuple[Disagreement | None, bool]:
    """What the sources disagree on, None where nothing can be said; whether it is being computed.

    wait_s  how long to wait for it
    """
    read = site.reader.open(report.snapshot.id).manifest.documents
    if sum(1 for n in read.values() if n) < 2:
        return None, False
    try:
        found = site.answers.disagreement(report.snapshot.id, wait_s)
    except (InputError, SnapshotError):
        return None, False
    if found is None:
        return None, True
    chosen = site.filter(request)
    near = site.answers.about(report.snapshot.id, chosen.topic)
    return chosen.disagreement(plain_disagreement(found), near), False


def _disagreement(site: Site, request: Request, id: str) -> Response:  # noqa: A002
    """The section of a brief that came before its sources were compared: 202 while they still are,
    204 where there is nothing to show.
    """
    report = site.reader.report(id)
    found, pending = (None, True) if report is None else compared(site, request, report, LATER_S)
    if pending:
        return Response(status_code=202)
    if found is None or not found.compared:
        return Response(status_code=204)
    sentences = brief.differ(found, site.words(request))
    return site.render(request, "disagreement.html", found=found, sentences=sentences)
