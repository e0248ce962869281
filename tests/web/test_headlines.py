"""Headlines of original documents: fetched when asked for, kept where a setting says so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pyarrow as pa
import pytest
from fastapi import Depends
from starlette.datastructures import QueryParams
from unguarded import let_in

from browsing import CHROMIUM
from embedding.crawl.config import CrawlConfig
from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore
from embedding.web.app import create_app
from embedding.web.headlines import HeadlineStore

DAY = 18_323
"""2 March 2020."""
PAGES = {
    "/read": (200, "<title>확진자가 늘었다</title><p>본문은 저장하지 않는다</p>"),
    "/markup": (200, "<title>&lt;img src=x onerror=alert(1)&gt;</title><p>x</p>"),
    "/gone": (404, ""),
    "/closed": (403, ""),
    "/moved": (302, "/login?next=/moved"),
    "/login": (200, "<title>Log in</title><p>x</p>"),
    "/broken": (500, ""),
    "/bare": (200, "<p>no headline</p>"),
    "/robots.txt": (200, "User-agent: *\nDisallow: /private"),
    "/private": (200, "<title>private</title><p>x</p>"),
}
EXPECTED = {
    "/read": ("read", "확진자가 늘었다"),
    "/markup": ("read", "<img src=x onerror=alert(1)>"),
    "/gone": ("gone", ""),
    "/closed": ("login", ""),
    "/moved": ("login", ""),
    "/broken": ("later", ""),
    "/bare": ("none", ""),
    "/private": ("refused", ""),
}


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        status, body = PAGES.get(self.path.partition("?")[0], (404, ""))
        self.send_response(status)
        if status == 302:
            self.send_header("location", body)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.asked = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def base(site: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{site.server_address[1]}"


@pytest.fixture(scope="module")
def noted(config, site, tmp_path_factory):
    """The store with the pages of the site among the documents of a word."""
    folder = tmp_path_factory.mktemp("noted")
    rows = len(EXPECTED)
    table = pa.table(
        {
            "word": ["마스크"] * rows,
            "source": [f"출처{at}" for at in range(rows)],
            "day": [DAY] * rows,
            "hash": list(range(rows)),
            "url": [base(site) + path for path in EXPECTED],
            "published": [DAY * 86_400.0 + 60 * at for at in range(rows)],
        },
        schema=EVIDENCE_SCHEMA,
    )
    EvidenceStore(folder).add(table, "n")
    return config.model_copy(update={"evidence": folder, "headlines_file": folder / "headlines.db"})


def client(noted, site, client_of, **changes) -> httpx.Client:
    host = base(site).removeprefix("http://")
    crawl = CrawlConfig(allow_private_hosts=(host,), rate=1000.0)
    app = create_app(noted.model_copy(update=changes), dependencies=[Depends(let_in)], crawl=crawl)
    return client_of(app)


def ask(one: httpx.Client, url: str, word: str = "마스크", **more: str) -> httpx.Response:
    asked = {"u": url, "d": "2020-03-02", "w": word, **more}
    return one.get("/api/headline", params=asked, headers={"accept-language": "ko"})


def test_each_document_has_its_headline_or_a_reason(noted, site, client_of) -> None:
    one = client(noted, site, client_of)
    for path, (state, text) in EXPECTED.items():
        found = ask(one, base(site) + path).json()
        assert (found["state"], found["headline"]) == (state, text), path
        assert bool(found["said"]) == (state != "read")
    assert "/private" not in site.asked
    assert ask(one, base(site) + "/gone").json()["said"] == "글이 삭제되었습니다."
    assert ask(one, base(site) + "/closed").json()["said"] == "로그인해야 볼 수 있는 글입니다."
    assert not noted.headlines_file.exists(), "nothing is kept by default"


@pytest.mark.parametrize(
    "changes",
    [
        {"u": "http://127.0.0.1:1/secret"},
        {"w": "코로나"},
        {"d": "2020-03-03"},
        {"d": "no day"},
        {"d": "9999-12-31"},
    ],
)
def test_nothing_but_documents_of_the_page_is_fetched(noted, site, client_of, changes) -> None:
    one = client(noted, site, client_of)
    site.asked.clear()
    asked = {"u": base(site) + "/read", "d": "2020-03-02", "w": "마스크", **changes}
    assert one.get("/api/headline", params=asked).status_code == 404
    assert site.asked == []


def test_kept_headlines_are_shown_at_once_and_can_be_erased(noted, site, client_of) -> None:
    one = client(noted, site, client_of, keep_headlines=True)
    one.headers["accept-language"] = "ko"
    for path in EXPECTED:
        ask(one, base(site) + path)
    page = one.get("/word/마스크").text
    assert "확진자가 늘었다" in page
    assert "&lt;img src=x onerror" in page
    assert "<img" not in page
    assert "본문은 저장하지 않" in page
    store = HeadlineStore(noted.headlines_file)
    assert store.erase(word="확진자", dry=True) == 1
    assert store.erase(word="확진자") == 1
    assert store.erase(page=base(site) + "/markup") == 1
    assert "확진자".encode() not in noted.headlines_file.read_bytes()
    assert store.find([base(site) + "/read"]) == {}


def test_headlines_that_are_off_are_not_offered(noted, site, client_of) -> None:
    one = client(noted, site, client_of, headlines=False)
    assert "data-headline" not in one.get("/word/마스크").text
    assert ask(one, base(site) + "/read").status_code == 404
    shown = client(noted, site, client_of).get("/word/마스크").text
    assert shown.count("data-headline=") == len(EXPECTED)
    assert QueryParams(shown.partition("/api/headline?")[2].partition('"')[0])


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
async def test_a_reader_asks_for_headlines(noted, site, serve, page_of) -> None:
    host = base(site).removeprefix("http://")
    crawl = CrawlConfig(allow_private_hosts=(host,), rate=1000.0)
    address = serve(create_app(noted, dependencies=[Depends(let_in)], crawl=crawl))
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        await page.goto(address + "/word/마스크")
        assert "저장하지 않습니다" in await page.locator("[data-headlines-about]").inner_text()
        await page.get_by_role("button", name="제목 보기").click()
        documents = page.locator(".documents")
        await documents.get_by_text("확진자가 늘었다").wait_for()
        await documents.get_by_text("글이 삭제되었습니다.").wait_for()
        await documents.get_by_text("<img src=x onerror=alert(1)>").wait_for()
        assert await documents.locator("img").count() == 0
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
