from __future__ import annotations

import time
import zlib

import httpx
import pytest
from lxml import html

from yeoron_simweb.app import create_app
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import from_records
from yeoron_simweb.faults import MANY


def test_every_kind_is_linked_and_answers(web: httpx.Client) -> None:
    links = html.fromstring(web.get("/fault/").text).xpath("//li/a/@href")
    assert len(links) >= 18
    for link in links:
        with web.stream("GET", link) as answer:
            assert answer.status_code in (200, 302, 404, 429, 500, 503, 504), link
    assert web.get("/fault/unheard-of").status_code == 404


def test_the_redirect_loop_has_no_end(web: httpx.Client) -> None:
    with pytest.raises(httpx.TooManyRedirects):
        web.get("/fault/redirect-loop", follow_redirects=True)


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("private", "http://10."), ("metadata", "http://169.254."), ("file", "file:")],
)
def test_redirects_to_forbidden_places(web: httpx.Client, kind: str, scheme: str) -> None:
    answer = web.get(f"/fault/redirect-{kind}")
    assert answer.status_code == 302
    assert answer.headers["location"].startswith(scheme)


def test_hang_is_bounded(web: httpx.Client) -> None:
    begin = time.monotonic()
    assert web.get("/fault/hang", timeout=120).status_code == 504
    assert time.monotonic() - begin > 0.3


def test_big_bodies_are_as_big_as_set(web: httpx.Client) -> None:
    answer = web.get("/fault/big")
    assert "content-length" not in answer.headers
    assert len(answer.content) == 3_000_000
    with web.stream("GET", "/fault/gzip-bomb") as bomb:
        packed = b"".join(bomb.iter_raw())
    assert len(packed) < 20_000
    assert len(zlib.decompress(packed, 31)) == 2 * 1024 * 1024


@pytest.mark.parametrize("kind", ["broken-gzip", "cut-off"])
def test_packed_bodies_do_not_unpack(web: httpx.Client, kind: str) -> None:
    with web.stream("GET", f"/fault/{kind}") as answer:
        assert answer.headers["content-encoding"] == "gzip"
        raw = b"".join(answer.iter_raw())
    unpacker = zlib.decompressobj(31)
    try:
        unpacker.decompress(raw)
    except zlib.error:
        return
    assert not unpacker.eof


def test_broken_html_still_holds_text(web: httpx.Client) -> None:
    body = web.get("/fault/broken-html").content
    assert b"\x00" in body
    with pytest.raises(UnicodeDecodeError):
        body.decode()
    assert (
        "도서관" in html.fromstring(body.decode(errors="replace").replace("\0", "")).text_content()
    )


def test_a_wrong_charset_is_euckr_called_utf8(web: httpx.Client) -> None:
    answer = web.get("/fault/wrong-charset")
    assert "utf-8" in answer.headers["content-type"]
    assert "도서관" in answer.content.decode("euc-kr")


async def test_429_asks_to_wait_and_counts_who_does_not() -> None:
    now = 1_000_000.0
    config = SimwebConfig()
    corpus = from_records([{"date": "2020-01-01", "text": "글", "part": "comments"}], config)
    app = create_app(config, corpus)
    app.state.world._now = lambda: now
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1"
    ) as web:
        first = await web.get("/fault/429?key=test")
        assert first.status_code == 429
        assert first.headers["retry-after"] == "1"
        now += 0.5
        assert (await web.get("/fault/429?key=test")).status_code == 429
        assert (await web.get("/control/stats")).json()["early_retries"] == 1
        now += 0.6
        assert (await web.get("/fault/429?key=test")).status_code == 200
        assert (await web.get("/control/stats")).json()["early_retries"] == 1


def test_one_article_under_many_addresses(web: httpx.Client, url: str) -> None:
    links = html.fromstring(web.get("/fault/many").text).xpath("//li/a/@href")
    assert links == list(MANY)
    for link in links:
        page = html.fromstring(web.get(url + link).text)
        assert page.xpath("//link[@rel='canonical']/@href") == [url + MANY[0]]
