"""The team's page: shared words with alerts, notes, the mailed report, and forms for them."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from embedding.kernel.errors import KeyedError
from embedding.show.team import LONGEST_NAME, LONGEST_NOTE, REPORT_FORMATS, TeamStore
from embedding.web.handout.writing import FORMATS
from embedding.web.login import local_path, read_body
from embedding.web.pages import watch_lines
from embedding.web.site import NAME_COOKIE, AskedPage, PageRequest
from embedding.web.tokens import ANALYST, RoleError

LARGEST_TEAM_FORM = 16 * LONGEST_NOTE
"""Bytes of a form: nine for a Korean letter, and the other fields."""


async def read_posted(request: Request) -> dict[str, str]:
    """The fields of a form that a page of this application sent.

    Raises HTTPException 403 for one that another site had sent, KeyedError for one that is too long
    or no text.
    """
    if not _from_here(request):
        raise HTTPException(403, "the form came from another site.")
    body = await read_body(request, LARGEST_TEAM_FORM)
    if body is None:
        raise KeyedError("note_long", f"a note takes at most {LONGEST_NOTE} characters.")
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise KeyedError("bad_address", "the form is no text in UTF-8.") from None
    return {name: values[0] for name, values in fields.items()}


def _from_here(request: Request) -> bool:
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = urlsplit(request.headers.get("origin", "")).netloc
    return bool(origin) and origin == request.headers.get("host", "")


def _who(page: PageRequest, form: dict[str, str]) -> str:
    return page.login_name or form.get("who", "")


def _back(page: PageRequest, form: dict[str, str]) -> Response:
    """To the page that the form was on; a typed name is remembered."""
    response = RedirectResponse(page.links.root + local_path(form.get("next", "/team")), 303)
    if who := form.get("who", "").strip()[:LONGEST_NAME]:
        page.remember(response, NAME_COOKIE, who.encode("unicode_escape").decode())
    return response


async def _team_of(page: AskedPage) -> TeamStore:
    if page.site.team is None:
        raise HTTPException(404)
    return page.site.team


async def _ordered(page: AskedPage) -> dict[str, str]:
    """The fields of a form of somebody who may change what the team shares; else RoleError."""
    if not page.may(ANALYST):
        raise RoleError(ANALYST)
    return await read_posted(page.request)


Team = Annotated[TeamStore, Depends(_team_of)]
TeamForm = Annotated[dict[str, str], Depends(_ordered)]
team_routes = APIRouter(prefix="/team", default_response_class=HTMLResponse)


@team_routes.post("/watch")
async def _watch(page: AskedPage, team: Team, form: TeamForm) -> Response:
    team.watch(form.get("word", ""), _who(page, form), alert="alert" in form)
    return _back(page, form)


@team_routes.post("/unwatch")
async def _unwatch(page: AskedPage, team: Team, form: TeamForm) -> Response:
    team.unwatch(form.get("word", ""))
    return _back(page, form)


@team_routes.post("/report")
async def _report(page: AskedPage, team: Team, form: TeamForm) -> Response:
    team.mail_report(form.get("format", ""), page.t.language, _who(page, form))
    return _back(page, form)


@team_routes.post("/note")
async def _note(page: AskedPage, team: Team, form: TeamForm) -> Response:
    kind, about, text = (form.get(name, "") for name in ("kind", "about", "text"))
    team.note(kind, about, text, _who(page, form))
    return _back(page, form)


@team_routes.post("/unnote")
async def _unnote(page: AskedPage, team: Team, form: TeamForm) -> Response:
    team.remove_note(form.get("id", ""), page.login_name or None)
    return _back(page, form)


@team_routes.get("")
def _page(page: AskedPage, team: Team) -> Response:
    shared = team.read()
    lines = watch_lines(page, [watched.word for watched in shared.words])
    return page.render(
        "team.html",
        lines=[(watched, lines[watched.word]) for watched in shared.words if watched.word in lines],
        notes=tuple(reversed(shared.notes)),
        mailed=shared.report,
        report_formats=[name for name in REPORT_FORMATS if FORMATS[name].available],
    )
