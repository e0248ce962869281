"""The comments API: JSON, newest first, with cursors, which name a position from the old end of a
list that grows, so that they stay valid.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from yeoron_simweb.config import NEWS_SECTIONS
from yeoron_simweb.library import LibraryItem
from yeoron_simweb.news import base_address
from yeoron_simweb.world import World

_LONGEST = 200
# A comment belongs to one of the articles that were new when it was written.
_RECENT = 5


def newest_before(
    items: Sequence[LibraryItem], cursor: str, size: int
) -> tuple[list[LibraryItem], str | None]:
    """The `size` newest items before a cursor (empty: from the newest on), newest first.

    Returns them with the cursor of what follows, None at the end; 400 for a foreign cursor.
    """
    end = len(items)
    if cursor:
        if not re.fullmatch(r"c[0-9]{1,12}", cursor):
            raise HTTPException(400, "cursor: not one that this endpoint gave out")
        end = min(int(cursor[1:]), end)
    start = max(end - size, 0)
    return list(reversed(items[start:end])), f"c{start}" if start else None


class Threads:
    """Which article a comment belongs to: one of the newest before it, chosen by its id."""

    def __init__(self, world: World) -> None:
        articles = [i for i in world.library.items if i.part in NEWS_SECTIONS]
        self._articles = articles
        self._events = [item.event for item in articles]

    def path(self, comment: LibraryItem) -> str:
        """Path of the article; the front page where none was published before the comment."""
        at = bisect_right(self._events, comment.event)
        if not at:
            return "/news"
        back = int(comment.id[:8], 16) % min(_RECENT, at)
        return f"/news/a/{self._articles[at - 1 - back].id}"


def comments_router(world: World) -> APIRouter:
    """Routes under /comments."""
    router = APIRouter()
    threads = Threads(world)
    empty_page = "empty-page" in world.config.habits

    def as_json(item: LibraryItem, base: str) -> dict[str, Any]:
        return {
            "id": item.id,
            "created_at": item.iso,
            "author": item.author,
            # A title that the corpus gave is its first line.
            "body": f"{item.title}\n{item.text}" if item.titled else item.text,
            "article_url": base + threads.path(item),
        }

    @router.get("/comments/api")
    async def comments(request: Request, cursor: str = "", limit: int | None = None) -> Response:
        size = min(max(limit or world.config.page_items, 1), _LONGEST)
        visible = world.read("comments")
        if empty_page and cursor.startswith("e"):
            return JSONResponse(
                {"comments": [], "next_cursor": f"c{cursor[1:]}", "total": len(visible)}
            )
        items, following = newest_before(visible, cursor, size)
        if empty_page and not cursor and following:
            following = f"e{following[1:]}"
        world.fetched(*items)
        base = base_address(request)
        return JSONResponse(
            {
                "comments": [as_json(item, base) for item in items],
                "next_cursor": following,
                "total": len(visible),
            }
        )

    return router
