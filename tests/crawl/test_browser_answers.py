"""Items of a rendered page from the JSON that the page fetches, with the real Chromium."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from browsing import CHROMIUM
from embedding.crawl.browser import BrowserPool
from embedding.crawl.fetcher import Fetcher, Request
from embedding.kernel.errors import FetchError
from embedding.sources.config import SourceConfig

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here"),
]

SHAPED = "<body><h1>게시판</h1><script>fetch('/menu');fetch('/list?p=1')</script></body>"
ROWS = [
    {
        "commentNo": n,
        "contents": f"<p>이것은 글 {n} 입니다</p>",
        "regTime": f"2024-01-0{n}T01:00:00Z",
        "writer": {"nick": f"사람{n}"},
    }
    for n in range(1, 4)
]


@pytest.fixture
async def pool(site: Any, simweb: str, quick: Any, one_browser: None) -> Any:
    config = quick(site.host, simweb.removeprefix("http://"), render_deadline=120.0)
    fetcher = Fetcher(config)
    browsers = BrowserPool(config, fetcher)
    yield browsers
    await browsers.close()
    await fetcher.close()


def rendered(url: str, **more: Any) -> SourceConfig:
    return SourceConfig(name="b", kind="rendered", url=url, **more)


async def test_a_selector_that_is_none_is_named(pool: BrowserPool, site: Any, reply: Any) -> None:
    site.answers["/b"] = reply("<body><li>글</li></body>")
    for wrong in ({"items": "li:::x"}, {"items": "li", "id": "li:::x@data-id"}):
        source = rendered(f"{site.base}/b", text="p", **wrong)
        with pytest.raises(FetchError, match="'li:::x' is not a CSS selector") as caught:
            await pool.render(source, Request(source.url), lambda _: True)
        assert caught.value.reason == "render"


async def test_a_scrolled_board_is_read_from_its_answers(pool: BrowserPool, simweb: str) -> None:
    async with httpx.AsyncClient() as web:
        posts, cursor = [], ""
        while cursor is not None:
            answer = (await web.get(f"{simweb}/board/api/posts?before={cursor}&limit=100")).json()
            posts, cursor = posts + answer["posts"], answer["next"]
    wanted = 50
    for answers in ("auto", "/api/posts"):
        source = rendered(f"{simweb}/board", answers=answers)
        found = await pool.render(source, Request(source.url), lambda seen: len(seen) >= wanted)
        assert len(found) >= wanted
        for one, post in zip(found, posts, strict=False):
            assert (one.id, one.text, one.author) == (post["id"], post["body"], post["author"])
            assert (one.link, one.time) == (f"{simweb}{post['url']}", post["time"])


async def test_answers_are_told_by_shape_or_by_name_or_read_from_the_page(
    pool: BrowserPool, site: Any, reply: Any
) -> None:
    def json_of(value: Any) -> bytes:
        return reply(json.dumps(value), content_type="application/json")

    site.answers = {
        "/shaped": reply(SHAPED),
        "/plain": reply("<ul><li>글 하나</li><li>글 둘</li></ul><script>fetch('/menu')</script>"),
        "/menu": json_of({"menu": [{"id": 1, "url": "/a"}, {"id": 2, "url": "/b"}]}),
        "/list?p=1": json_of({"result": {"comments": ROWS, "more": False}}),
    }
    shaped = rendered(f"{site.base}/shaped", answers="auto")
    found = await pool.render(shaped, Request(shaped.url), lambda seen: False)
    assert [(one.id, one.text, one.author) for one in found] == [
        (str(n), f"이것은 글 {n} 입니다", f"사람{n}") for n in (1, 2, 3)
    ]
    assert found[0].time == "2024-01-01T01:00:00Z"
    named = rendered(
        shaped.url, answers="/list", items="result.comments", id="commentNo", text="contents"
    )
    found = await pool.render(named, Request(named.url), lambda seen: False)
    assert [(one.id, one.time) for one in found] == [("1", ""), ("2", ""), ("3", "")]
    plain = rendered(f"{site.base}/plain", answers="auto", items="li", text="")
    plain = plain.model_copy(update={"title": "@none"})
    found = await pool.render(plain, Request(plain.url), lambda seen: False)
    assert len(found) == 2
    assert "/menu" in site.asked
