"""The trends page inside Airflow's web server, behind Airflow's login.

An application that a plugin mounts is open to anybody unless each route asks for a login. The
page has routes and static files, so one route that takes every path asks, and hands the request
on only then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from embedding.kernel.errors import YeoronError

if TYPE_CHECKING:
    from starlette.exceptions import HTTPException
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

URL_PREFIX = "/yeoron"
LOGIN = "/api/v2/auth/login"
"""Airflow's own way to the login of whichever auth manager it has."""

_ROUTING = {"router", "route", "endpoint", "path_params", "app"}


class GuardedPage:
    """An ASGI application: Airflow's login first, then the trends page.

    Both are built at the first request, so that loading the plugin costs nothing in Airflow's
    other processes, and settings that became readable later are found.
    """

    def __init__(self) -> None:
        self._guard: ASGIApp | None = None
        self._page: ASGIApp | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._guard is None:
            async with self._lock:
                self._guard = self._guard or self._build_guard()
        from embedding.web.login import bears_token

        if bears_token(scope):
            # The page checks its own tokens; what they open is read only.
            await (await self.page())(scope, receive, send)
        else:
            await self._guard(scope, receive, send)

    async def page(self) -> Response:
        """The page, as a response that lets it answer; 503 with a sentence when it cannot."""
        async with self._lock:
            if self._page is None:
                try:
                    self._page = await asyncio.to_thread(_build_page)
                except YeoronError as error:
                    log.warning("The trends page cannot be shown: %s", error)
                    return PlainTextResponse(str(error), status_code=503)
        return _Forward(self._page)

    def _build_guard(self) -> ASGIApp:
        """One route for every path, which only a logged-in user passes.

        What may be sent is the forms of the team's page, which look where they come from.
        """
        from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
        from airflow.api_fastapi.core_api.security import requires_access_view
        from fastapi import Depends, FastAPI

        app = FastAPI(title="Yeoron", docs_url=None, redoc_url=None, openapi_url=None)
        app.add_api_route(
            "/{path:path}",
            self.page,
            methods=["GET", "HEAD", "POST"],
            dependencies=[Depends(requires_access_view(AccessView.PLUGINS))],
            response_model=None,
        )
        app.add_exception_handler(401, _to_login)  # type: ignore[arg-type]
        return app


async def _to_login(request: Request, error: HTTPException) -> Response:
    """A browser that opens a page without a login is led there, and back afterwards."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": error.detail}, error.status_code, error.headers)
    query = f"?{request.url.query}" if request.url.query else ""
    asked = urlencode({"next": f"{request.url.path}{query}"})
    home = request.scope.get("root_path", "").removesuffix(URL_PREFIX)
    return RedirectResponse(f"{home}{LOGIN}?{asked}", 303)


class _Forward(Response):
    """Hands the request that it answers to another application."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        # The page must route by itself: what the guard's router found is not its own.
        inner = {key: value for key, value in scope.items() if key not in _ROUTING}
        await self._app(inner, receive, send)


def _build_page() -> ASGIApp:
    """The page by the platform's settings.

    Given a login, it leaves out the token that it asks for when it is served alone.
    """
    from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
    from airflow.api_fastapi.core_api.security import get_user, requires_access_view
    from fastapi import Depends

    from embedding.settings import load_settings
    from embedding.web.app import create_app
    from embedding_airflow.roles import role_of

    logged_in = Depends(get_user)

    def named(request: Request, user: Any = logged_in) -> None:
        """Notes carry the name of the login, and its role says who may write them."""
        request.state.login_name = user.get_name()
        request.state.role = role_of(user)

    settings = load_settings()
    app: ASGIApp = create_app(
        settings.page,
        dependencies=[Depends(requires_access_view(AccessView.PLUGINS)), Depends(named)],
        crawl=settings.crawl,
        channels=settings.notify.channels,
    )
    return app
