"""The FastAPI application of the simulated web: routers around one `World`, and counting."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from embedding.kernel.ports import LOOPBACK_NAMES, is_loopback
from yeoron_simweb.board import board_router
from yeoron_simweb.comments import comments_router
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.control import control_router, site_router
from yeoron_simweb.corpus import PlaybackCorpus
from yeoron_simweb.faults import fault_router
from yeoron_simweb.news import news_router
from yeoron_simweb.oldboard import old_board_router
from yeoron_simweb.world import World

_DISALLOWED = ("/private/",)


class RequestCounter:
    """ASGI middleware that counts requests by kind, answers by status, and robots violations."""

    def __init__(self, app: ASGIApp, world: World) -> None:
        self._app = app
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = str(scope["path"])
        self._world.requests[kind_of(path)] += 1
        if path.startswith(_DISALLOWED):
            self._world.violations[path] += 1

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._world.statuses[int(message["status"])] += 1
            await send(message)

        await self._app(scope, receive, counted)


def kind_of(path: str) -> str:
    """The kind of an address under which its requests are counted, e.g. `/news/a`."""
    names = [name for name in path.split("/") if name]
    if names and names[0] == "news" and len(names) > 1:
        return "/news/a" if names[1] == "a" else f"/news/{names[-1]}"
    depth = 2 if names and names[0] in ("board", "bbs", "comments", "fault", "control") else 1
    return "/" + "/".join(names[:depth])


def create_app(config: SimwebConfig, corpus: PlaybackCorpus) -> FastAPI:
    """The simulated web that plays `corpus`; its state is at `app.state.world`."""
    world = World(config, corpus)
    app = FastAPI(title="Yeoron simulated web", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.world = world
    app.include_router(site_router(world))
    app.include_router(news_router(world))
    app.include_router(board_router(world))
    if "old-board" in config.habits:
        app.include_router(old_board_router(world))
    app.include_router(comments_router(world))
    app.include_router(fault_router(world))
    app.include_router(control_router(world))
    app.add_middleware(RequestCounter, world=world)
    if is_loopback(config.host):
        # A page of another site, open in a browser here, may have its name resolved to loopback.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[config.host, *LOOPBACK_NAMES])
    return app
