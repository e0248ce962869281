"""The FastAPI application of the simulated web: routers around one `World`, counting, and what runs
the simulation and watches it (clock, start, statistics, robots.txt, private pages).
"""

from __future__ import annotations

import math

from fastapi import APIRouter, FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from embedding.kernel.ports import LOOPBACK_NAMES, is_loopback
from yeoron_simweb.board import board_router
from yeoron_simweb.comments import comments_router
from yeoron_simweb.config import NEWS_SECTIONS, SimwebConfig
from yeoron_simweb.corpus import PlaybackCorpus
from yeoron_simweb.faults import fault_router
from yeoron_simweb.feeds import sitemap_index
from yeoron_simweb.habits import articles
from yeoron_simweb.markup import MarkupPage, feed_links
from yeoron_simweb.news import base_address, news_router
from yeoron_simweb.oldboard import old_board_router
from yeoron_simweb.world import World

_DISALLOWED = ("/private/",)
_HOME = """<h1>시뮬레이션 웹</h1>
<ul><li><a href="/news">뉴스</a></li><li><a href="/board">게시판</a></li>
<li><a href="/fault/">고장</a></li></ul>
"""


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


def robots_txt(base: str, crawl_delay: float) -> str:
    """robots.txt (RFC 9309, with the customary Crawl-delay)."""
    delay = f"Crawl-delay: {crawl_delay:g}\n" if crawl_delay > 0 else ""
    return f"User-agent: *\nDisallow: /private/\n{delay}\nSitemap: {base}/sitemap.xml\n"


def site_router(world: World) -> APIRouter:
    """Routes that a real site has too: home page, robots.txt, sitemap index, private pages."""
    router = APIRouter()

    @router.get("/")
    async def home() -> Response:
        return HTMLResponse(MarkupPage("시뮬레이션 웹", _HOME, feed_links()).html())

    @router.get("/robots.txt")
    async def robots(request: Request) -> Response:
        return PlainTextResponse(robots_txt(base_address(request), world.config.crawl_delay))

    @router.get("/sitemap.xml")
    async def sitemaps(request: Request) -> Response:
        base = base_address(request)
        urls = [f"{base}/news/{section}/sitemap.xml" for section in NEWS_SECTIONS]
        return Response(sitemap_index(urls), media_type="application/xml")

    @router.get("/private/{path:path}")
    async def private(path: str) -> Response:  # noqa: ARG001 - every path answers alike
        page = MarkupPage(
            "비공개", "<main><article><p>로봇은 읽지 않는 쪽입니다.</p></article></main>\n"
        )
        return HTMLResponse(page.html())

    return router


def control_router(world: World) -> APIRouter:
    """Routes of the simulation itself."""
    router = APIRouter()

    @router.get("/clock.json")
    async def clock() -> Response:
        return JSONResponse(world.clock_state(), headers={"Cache-Control": "no-store"})

    @router.post("/control/start")
    @router.get("/control/start")
    async def start() -> Response:
        world.start()
        return JSONResponse(world.clock_state())

    @router.post("/control/pace")
    async def pace(until: float | None = None, unlearnt: int = 0) -> Response:
        """`until` in Unix seconds; without it to the end."""
        world.pace(math.inf if until is None else until, unlearnt)
        return Response(status_code=204)

    @router.get("/control/articles")
    async def truth() -> Response:
        return JSONResponse(list(articles(world)), headers={"Cache-Control": "no-store"})

    @router.get("/control/stats")
    async def stats() -> Response:
        return JSONResponse(world.statistics(), headers={"Cache-Control": "no-store"})

    return router
