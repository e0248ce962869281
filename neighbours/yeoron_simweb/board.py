"""The board: pages that are empty until their script fetched posts, with infinite scroll."""

from __future__ import annotations

from importlib import resources
from typing import Any

from fastapi import APIRouter, HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from yeoron_simweb.comments import newest_before
from yeoron_simweb.library import LibraryItem
from yeoron_simweb.markup import MarkupPage
from yeoron_simweb.world import World

_LONGEST = 100

# The page holds no post: an adapter that does not run scripts sees only this shell.
_SHELL = """<header><h1><a href="/board">자유게시판</a></h1></header>
<main id="posts" aria-live="polite"></main>
<p id="more" role="status">불러오는 중…</p>
<script src="/board/app.js" defer></script>
"""


def post_json(item: LibraryItem) -> dict[str, Any]:
    """A post as the API gives it."""
    return {
        "id": item.id,
        "time": item.iso,
        "title": item.title,
        "author": item.author,
        "body": item.text,
        "url": f"/board/p/{item.id}",
    }


def board_router(world: World) -> APIRouter:
    """Routes under /board."""
    router = APIRouter()
    shell = MarkupPage("자유게시판", _SHELL).html()
    script = resources.files(__package__).joinpath("board.js").read_bytes()

    @router.get("/board")
    @router.get("/board/")
    async def front() -> Response:
        return HTMLResponse(shell)

    @router.get("/board/p/{key}")
    async def permalink(key: str) -> Response:
        if world.find(key, "board") is None:
            raise HTTPException(404, "no such post")
        return HTMLResponse(shell)

    @router.get("/board/app.js")
    async def app() -> Response:
        return Response(script, media_type="text/javascript; charset=utf-8")

    @router.get("/board/api/posts")
    async def posts(before: str = "", limit: int | None = None) -> Response:
        size = min(max(limit or world.config.page_items, 1), _LONGEST)
        items, cursor = newest_before(world.read("board"), before, size)
        world.fetched(*items)
        return JSONResponse({"posts": [post_json(item) for item in items], "next": cursor})

    @router.get("/board/api/posts/{key}")
    async def post(key: str) -> Response:
        item = world.find(key, "board")
        if item is None:
            raise HTTPException(404, "no such post")
        world.fetched(item)
        return JSONResponse(post_json(item))

    return router
