"""The report of a window as a file to save."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.params import Depends
from starlette.exceptions import HTTPException
from starlette.responses import Response

from embedding.web.handout.content import make_handout
from embedding.web.handout.writing import FORMATS, write_handout
from embedding.web.pages import computing
from embedding.web.site import Site


def handout_routes(site: Site, dependencies: Sequence[Depends]) -> APIRouter:
    """This route; `dependencies` guard it."""
    routes = APIRouter(dependencies=list(dependencies), include_in_schema=False)

    @routes.get("/window/{id}/report.{format}")
    def handout(request: Request, id: str, format: str) -> Response:  # noqa: A002
        if format not in FORMATS:
            raise HTTPException(404)
        report = site.reader.report(site.reader.open(id).id)
        if report is None:
            return computing(site, request)
        share = site.config.trends.false_discovery
        content = make_handout(report, site.answers.story_documents, site.reading(request), share)
        name = f"yeoron-{report.snapshot.id}.{format}"
        return Response(
            write_handout(content, format, site.config.chromium),
            media_type=FORMATS[format].media_type,
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    return routes
