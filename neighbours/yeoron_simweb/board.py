"""The board: pages that are empty until their script fetched posts, with infinite scroll."""

from __future__ import annotations

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

_SCRIPT = """"use strict";
(() => {
  const list = document.getElementById("posts");
  const more = document.getElementById("more");
  const single = location.pathname.match(/^\\/board\\/p\\/([0-9a-f]+)$/);
  let cursor = "";
  let loading = false;
  let ended = false;

  function append(post) {
    const article = document.createElement("article");
    article.className = "post";
    article.dataset.id = post.id;
    article.dataset.time = post.time;
    const heading = document.createElement("h2");
    const link = document.createElement("a");
    link.href = post.url;
    link.textContent = post.title;
    heading.append(link);
    const byline = document.createElement("p");
    byline.className = "byline";
    const author = document.createElement("span");
    author.className = "author";
    author.textContent = post.author;
    const time = document.createElement("time");
    time.dateTime = post.time;
    time.textContent = post.time.replace("T", " ").slice(0, 16) + " UTC";
    byline.append(author, " ", time);
    const body = document.createElement("div");
    body.className = "body";
    for (const line of post.body.split("\\n")) {
      if (!line.trim()) continue;
      const paragraph = document.createElement("p");
      paragraph.textContent = line;
      body.append(paragraph);
    }
    article.append(heading, byline, body);
    list.append(article);
  }

  async function load() {
    if (loading || ended) return;
    loading = true;
    try {
      const path = single
        ? "/board/api/posts/" + single[1]
        : "/board/api/posts?before=" + encodeURIComponent(cursor);
      const answer = await fetch(path);
      if (!answer.ok) throw new Error(String(answer.status));
      const data = await answer.json();
      for (const post of single ? [data] : data.posts) append(post);
      cursor = single ? null : data.next;
      ended = !cursor;
      more.textContent = ended ? "끝입니다." : "더 보기…";
      more.dataset.state = ended ? "end" : "more";
    } catch (error) {
      more.textContent = "불러오지 못했습니다.";
      more.dataset.state = "error";
      ended = true;
    } finally {
      loading = false;
    }
    if (!ended && more.getBoundingClientRect().top < innerHeight) load();
  }

  addEventListener("scroll", () => {
    if (more.getBoundingClientRect().top < innerHeight + 400) load();
  }, { passive: true });
  load();
})();
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
    async def script() -> Response:
        return Response(_SCRIPT, media_type="text/javascript; charset=utf-8")

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
