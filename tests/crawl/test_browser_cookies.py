"""Cookies of a rendered source go with what the source's own frames read, and with nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from browsing import CHROMIUM
from embedding.crawl.browser import BrowserPool
from embedding.crawl.fetcher import Fetcher
from embedding.crawl.runner import SourceWeb
from embedding.sources.config import SourceConfig

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here"),
]

BOARD = """<body><script src="/own.js"></script>
<iframe src="FOREIGN/frame"></iframe><iframe src="/inner"></iframe>
<script>
fetch("/list"); fetch("/vote", {method: "POST", mode: "no-cors"});
let told = 0;
addEventListener("message", () => {
  if (++told === 2) document.body.insertAdjacentHTML("beforeend", "<ul><li>all</li></ul>");
});
</script></body>"""
INNER = """<script>fetch("/inner/list").finally(() => parent.postMessage(1, "*"))</script>"""
FOREIGN = """<iframe src="BOARD/framed"></iframe><script>
const asked = [
  fetch("BOARD/account/delete", {method: "POST", mode: "no-cors", credentials: "omit"}),
  fetch("BOARD/account/read", {mode: "no-cors", referrerPolicy: "no-referrer"}),
  new Promise(done => {
    const script = document.createElement("script");
    script.src = "BOARD/own.js"; script.onload = script.onerror = done;
    document.head.append(script);
  }),
];
Promise.allSettled(asked).then(() => parent.postMessage(1, "*"));
</script>"""


@pytest.fixture
async def browsers(
    site: Any, other_site: Any, quick: Any, one_browser: None
) -> AsyncIterator[tuple[BrowserPool, Fetcher]]:
    config = quick(site.host, other_site.host, render_deadline=120.0)
    fetcher = Fetcher(config)
    found = BrowserPool(config, fetcher)
    yield found, fetcher
    await found.close()
    await fetcher.close()


def with_cookie(site: Any) -> dict[str, list[bool]]:
    """Whether each request of an address had the cookie."""
    found: dict[str, list[bool]] = {}
    for path, headers in zip(site.asked, site.headers, strict=True):
        found.setdefault(path, []).append("SECRET" in headers.get("cookie", "").upper())
    return found


@pytest.mark.parametrize("post", [False, True])
async def test_a_frame_of_another_origin_never_acts_as_the_operator(
    site: Any, other_site: Any, reply: Any, browsers: Any, post: bool
) -> None:
    pool, _ = browsers
    foreign = FOREIGN.replace("BOARD", site.base)
    other_site.answers = {"/frame": reply(foreign)}
    script = reply("0", content_type="text/javascript")
    plain = reply("[]", content_type="application/json")
    posted = {"/vote": plain, "/account/delete": plain, "/account/read": plain}
    site.answers = {
        "/board": reply(BOARD.replace("FOREIGN", other_site.base)),
        "/own.js": script,
        "/inner": reply(INNER),
        "/framed": reply("<p>framed</p>"),
        **dict.fromkeys(("/list", "/inner/list"), plain),
        **posted,
    }
    source = SourceConfig(
        name="b",
        kind="rendered",
        url=f"{site.base}/board",
        items="li",
        text="",
        cookies={"session": "SECRET"},
        post_cookies=post,
    )
    web = SourceWeb(source, None)  # type: ignore[arg-type]
    await pool.render(source, web.request(source.url), lambda seen: bool(seen))
    asked = with_cookie(site)
    for path in ("/board", "/list", "/inner", "/inner/list"):
        assert asked[path] == [True], path
    assert asked["/vote"] == [post]
    for path in ("/account/delete", "/account/read", "/framed"):
        assert asked[path] == [False], path
    assert sorted(asked["/own.js"]) == [False, True], "its answer to the operator is not shared"
    assert not any(any(with_) for with_ in with_cookie(other_site).values())
