"""The trends page as a FastAPI application: alone with its own login, or mounted behind another."""

from __future__ import annotations

import errno
import logging
import re
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any
from urllib.parse import urlencode

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

from embedding import __version__
from embedding.ask.answers import Answers, LaterError, UnknownWordError
from embedding.crawl.config import CrawlConfig
from embedding.kernel.errors import InputError, KeyedError, SnapshotError, YeoronError
from embedding.show.team import TeamStore
from embedding.web.api import PREFIXES, api_routes, headline_routes, responses_of, unknown_routes
from embedding.web.config import WebConfig
from embedding.web.feed import feed_routes
from embedding.web.headers import HEADERS, SecurityHeaders
from embedding.web.headlines import Headlines, HeadlineStore
from embedding.web.links import FEED
from embedding.web.login import (
    Login,
    LoginRequiredError,
    TokenAccess,
    TokenGuard,
    TooManyError,
    bears_token,
    ensure_token,
    local_path,
    read_form,
)
from embedding.web.pages import RETRY_S, computing, error_page, nothing, page_routes
from embedding.web.site import (
    STATIC_TYPES,
    AskedPage,
    NothingChosenError,
    PageRequest,
    Site,
    Stream,
)
from embedding.web.teampage import team_routes
from embedding.web.tokens import AccessTokens, RoleError, TokenRefusedError, accounts

log = logging.getLogger(__name__)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
OPENAPI = "/api/v1/openapi.json"
_ABOUT = """What Yeoron's page shows, for programs: read only.

Send a token that `yeoron token make NAME` printed: `Authorization: Bearer yeoron_…`. A window is
its label (`2020-03`), the id of its snapshot, or `latest`. Figures are rounded to six digits, and
null where they are not known. An answer that is still being computed is 503 with `Retry-After`.
"""


def create_app(
    config: WebConfig | None = None,
    *,
    dependencies: Sequence[Dependency] = (),
    crawl: CrawlConfig | None = None,
    channels: tuple[str, ...] = (),
) -> FastAPI:
    """Build the application.

    dependencies  put before every route except `/health`, e.g. Airflow's login. They may set
                  `request.state.login_name` and `role`; without a role people only read. Without
                  any, the page asks for an account, or the token in `config.token_file`.
    crawl         how the crawler fetches: headlines of documents are fetched so; None: they are not
    channels      of notices (`NotifyConfig.channels`)

    Raises ConfigError when the token file or the snapshot address cannot be used.
    """
    config = config or WebConfig()
    login = None
    if not dependencies:
        token = ensure_token(config.token_file)
        known = accounts(config.accounts)
        login = Login(token, known, config.accounts, config.session_hours)
    stream = Stream(config.status_url)
    headlines = None
    if crawl is not None and config.headlines and config.evidence is not None:
        store = HeadlineStore(config.headlines_file) if config.keep_headlines else None
        headlines = Headlines(crawl, store)
    team = None if config.team is None else TeamStore(config.team)
    site = Site(config, Answers(config), stream, login, headlines, team, channels)
    guards = [*dependencies] if login is None else [Depends(login.require)]
    app = _application(site)
    app.add_middleware(TokenAccess, programs=_programs(site))
    app.add_middleware(SecurityHeaders)
    _open_routes(app, site, [] if login is not None else guards)
    app.include_router(headline_routes, dependencies=guards)
    _program_routes(app, guards)
    for routes in (page_routes, team_routes):
        app.include_router(routes, dependencies=guards)
    threading.Thread(target=site.answers.warm, name="read-ahead", daemon=True).start()
    return app


def _application(site: Site) -> FastAPI:
    app = FastAPI(title="Yeoron", docs_url=None, redoc_url=None, openapi_url=None)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.state.site = site
    return app


def _programs(site: Site) -> FastAPI:
    guard = TokenGuard(AccessTokens(site.config.tokens), site.config.requests_per_minute)
    app, guards = _application(site), [Depends(guard.require)]
    _program_routes(app, guards)
    app.include_router(unknown_routes, dependencies=guards)
    return app


def _program_routes(app: FastAPI, guards: Sequence[Dependency]) -> None:
    app.add_api_route(OPENAPI, _schema, dependencies=list(guards))
    for prefix in PREFIXES:
        app.include_router(api_routes, prefix=prefix, dependencies=guards)
    app.include_router(feed_routes, dependencies=guards)
    app.include_router(unknown_routes, prefix="/api", dependencies=guards)


def _schema(page: AskedPage) -> dict[str, Any]:
    return {**description(), "servers": [{"url": page.root or "/"}]}


@cache
def description() -> dict[str, Any]:
    """OpenAPI of the answers for programs, made when somebody asks for it: it takes a second."""
    bearer = [Depends(HTTPBearer(auto_error=False))]
    app = FastAPI(title="Yeoron", version=__version__, description=_ABOUT, dependencies=bearer)
    for route in api_routes.routes:
        if isinstance(route, APIRoute):
            app.add_api_route(
                PREFIXES[0] + route.path,
                route.endpoint,
                summary=route.summary,
                description=route.description,
                responses=responses_of(route.path),
            )
    app.include_router(feed_routes)
    return app.openapi()


def _open_routes(app: FastAPI, site: Site, static_guards: Sequence[Dependency]) -> None:

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/static/{name}", dependencies=list(static_guards))
    def static(name: str) -> Response:
        if name not in STATIC_TYPES:
            raise HTTPException(404)
        keep = {"Cache-Control": "private, max-age=31536000, immutable"}
        return Response(site.static[name], media_type=STATIC_TYPES[name], headers=keep)

    login = site.login
    if login is None:
        return

    @app.get("/login")
    def login_page(page: AskedPage, next: str = "/") -> Response:  # noqa: A002
        return page.render("login.html", next=local_path(next), wrong=False, wait=0)

    @app.post("/login")
    async def log_in(page: AskedPage, request: Request) -> Response:
        form = await read_form(request)
        target = local_path(form.get("next", "/"))
        client = request.client.host if request.client else ""
        who = login.accepts(form.get("name", ""), form.get("token", ""))
        if who is not None:
            response = RedirectResponse(page.root + target, 303)
            login.start(request, response, who)
            return response
        if wait := login.tries.wait(client):
            answer = page.render("login.html", 429, next=target, wrong=True, wait=wait)
            answer.headers["Retry-After"] = str(wait)
            return answer
        login.tries.note(client)
        return page.render("login.html", 403, next=target, wrong=True, wait=0)

    @app.post("/logout")
    def log_out(page: AskedPage, request: Request) -> Response:
        response = RedirectResponse(page.links.page("login"), 303)
        login.end(request, response)
        return response


def _page(request: Request) -> PageRequest:
    return PageRequest(request.app.state.site, request)


def _answer(request: Request, status: int, key: str = "", detail: str = "") -> Response:
    """key: what a page says in the reader's language; detail: the sentence for programs."""
    if _for_programs(request):
        return JSONResponse({"error": detail or "there is no such answer."}, status)
    return error_page(_page(request), status, key, detail)


def _token_refused(request: Request, error: TokenRefusedError) -> Response:
    t = _page(request).words("period")
    refused = {"error": str(error), "said": t(error.key, day=t.window(error.day))}
    return JSONResponse(refused, 401, {"WWW-Authenticate": "Bearer"})


def _too_many(_: Request, error: TooManyError) -> Response:
    return JSONResponse({"error": str(error)}, 429, {"Retry-After": str(error.seconds)})


def _login_required(request: Request, _: LoginRequiredError) -> Response:
    if _for_programs(request):
        sentence = "log in first, or send a token (Authorization: Bearer yeoron_…)."
        return JSONResponse({"error": sentence}, 401, {"WWW-Authenticate": "Bearer"})
    target = _path(request) + (f"?{request.url.query}" if request.url.query else "")
    login = _page(request).links.page("login")
    return RedirectResponse(f"{login}?{urlencode({'next': target})}", 303)


def _http_error(request: Request, error: HTTPException) -> Response:
    detail = "" if error.status_code == 404 and error.detail == "Not Found" else error.detail
    key = "" if not detail else "not_yet" if error.status_code == 503 else "bad_address"
    response = _answer(request, error.status_code, key, str(detail))
    response.headers.update(error.headers or {})
    return response


def _bad_request(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    return _answer(request, 422, "bad_address", f"{first['loc'][-1]}: {first['msg']}.")


def _later(request: Request, _: LaterError) -> Response:
    if not _for_programs(request) and not _path(request).endswith(".csv"):
        return computing(_page(request))
    response = _answer(request, 503, "not_yet", "the answer is being computed: ask again.")
    response.headers["Retry-After"] = str(RETRY_S)
    return response


def _unknown_word(request: Request, error: UnknownWordError) -> Response:
    if _for_programs(request):
        return _answer(request, 400, detail=str(error))
    return _page(request).render("unknown.html", 404, word=error.word, nearest=error.nearest)


def _known_error(request: Request, error: YeoronError) -> Response:
    if isinstance(error, SnapshotError):
        page = _page(request)
        if not page.answers.listing().refs and not _for_programs(request):
            return page.render("empty.html", 404, broken=page.answers.listing().broken)
        # Where the store lies on this machine is nothing to a reader of the page.
        store = rf"(?<!\w){re.escape(page.config.snapshots)}(?!\w)"
        return _answer(request, 404, "snapshot_missing", re.sub(store, "the store", str(error)))
    if isinstance(error, RoleError):
        return _answer(request, 403, f"needs_{error.needed}", str(error))
    if isinstance(error, InputError):
        key = error.key if isinstance(error, KeyedError) else "bad_address"
        return _answer(request, 400, key, str(error))
    return _answer(request, 500, "server_error", str(error))


def _not_installed(request: Request, error: ModuleNotFoundError) -> Response:
    return _answer(request, 501, "server_error", f"{error.name} is not installed here.")


def _not_kept(request: Request, error: OSError) -> Response:
    if error.errno not in _NO_ROOM:
        raise error
    return _answer(request, 507, "disk_full", "the disk is full; nothing was kept.")


def _unknown_error(request: Request, _: Exception) -> Response:
    response = _answer(request, 500)
    response.headers.update(HEADERS)  # this answer is made outside the middleware
    return response


_HANDLERS: dict[type[Exception], Any] = {
    TokenRefusedError: _token_refused,
    TooManyError: _too_many,
    LoginRequiredError: _login_required,
    HTTPException: _http_error,
    RequestValidationError: _bad_request,
    NothingChosenError: lambda request, _: nothing(_page(request)),
    LaterError: _later,
    UnknownWordError: _unknown_word,
    YeoronError: _known_error,
    ModuleNotFoundError: _not_installed,
    OSError: _not_kept,
    Exception: _unknown_error,
}
"""What is answered to an error: a page in the reader's language, or a sentence as JSON."""


def _for_programs(request: Request) -> bool:
    path = _path(request)
    return path.startswith("/api/") or path == FEED or bears_token(request.scope)


def _path(request: Request) -> str:
    root, path = str(request.scope.get("root_path", "")), str(request.scope["path"])
    return path.removeprefix(root) if root and path.startswith(root) else path
