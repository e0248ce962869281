"""What runs the simulation and watches it: clock, start, statistics, robots.txt, private pages."""

from __future__ import annotations

import math

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from yeoron_simweb.config import NEWS_SECTIONS
from yeoron_simweb.feeds import sitemap_index
from yeoron_simweb.habits import articles
from yeoron_simweb.markup import MarkupPage, feed_links
from yeoron_simweb.news import base_address
from yeoron_simweb.world import World

_HOME = """<h1>시뮬레이션 웹</h1>
<ul><li><a href="/news">뉴스</a></li><li><a href="/board">게시판</a></li>
<li><a href="/fault/">고장</a></li></ul>
"""


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
