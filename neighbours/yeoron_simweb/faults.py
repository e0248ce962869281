"""Misbehaviour on request, under /fault/: everything a crawler must survive.

`/fault/` links one page of each kind; `/fault/many` links one article under many addresses.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable

from fastapi import APIRouter, HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.markup import MarkupPage, paragraphs
from yeoron_simweb.news import base_address
from yeoron_simweb.world import World

_CHUNK = 64 * 1024
_RETRY_AFTER = 1.0
_LATER = {"Retry-After": f"{_RETRY_AFTER:.0f}"}
_DRIP = 0.1
_HTML = "text/html; charset=utf-8"
_PACKED = {"Content-Encoding": "gzip", "Content-Type": _HTML}

# Fixed text: a faulty page must not depend on the corpus.
TEXT = (
    "시민들은 새로 문을 연 도서관을 찾아 책을 읽고 이야기를 나누었다.\n"
    "도서관은 저녁 늦게까지 열려 있고 주말에는 아이들을 위한 공연도 열린다.\n"
    "담당자는 더 많은 주민이 편하게 이용할 수 있도록 자리를 늘리겠다고 밝혔다."
)

MANY = (
    "/fault/many/1",
    "/fault/many/1?utm_source=feed&utm_medium=rss",
    "/fault/many/1?fbclid=abc123",
    "/fault/many/1/amp",
    "/fault/many/1/",
    "/fault/many/1#comments",
    "/fault//many/1",
    "/fault/many/1?ref=front&page=1",
)
"""Addresses of one and the same article; the first is the canonical one."""


def sound_article(title: str, url: str) -> str:
    """HTML of a sound article whose canonical address is `url`."""
    head = (
        f'<link rel="canonical" href="{url}">\n'
        f'<meta property="og:title" content="{title}">\n'
        '<meta property="article:published_time" content="2021-03-04T05:06:07+00:00">\n'
    )
    body = (
        f"<main><article><h1>{title}</h1>\n"
        f'<div class="article-body">{paragraphs(TEXT)}</div></article></main>\n'
    )
    return MarkupPage(title, body, head).html()


def links_page(title: str, paths: list[str]) -> Response:
    """A list of links."""
    shown = [path.replace("&", "&amp;") for path in paths]
    rows = "\n".join(f'<li class="headline"><a href="{p}">{p}</a></li>' for p in shown)
    body = f'<main><h1>{title}</h1>\n<ul class="headlines">\n{rows}\n</ul></main>\n'
    return HTMLResponse(MarkupPage(title, body).html())


def broken_gzip(url: str) -> Response:
    """Content-Encoding: gzip with a body that does not unpack."""
    packed = bytearray(gzip.compress(sound_article("고장 난 압축", url).encode()))
    middle = len(packed) // 2
    packed[12:middle] = bytes(middle - 12)
    return Response(bytes(packed), headers=_PACKED)


def cut_off(url: str) -> Response:
    """Content-Encoding: gzip with a body that ends early."""
    packed = gzip.compress(sound_article("끊긴 기사", url).encode())
    return Response(packed[: len(packed) // 2], headers=_PACKED)


def broken_html() -> Response:
    """Unclosed and crossed elements, stray bytes, NUL, a head that never ends."""
    lines = "<p>".join(TEXT.split("\n"))
    html = (
        "<html><head><title>깨진 쪽<meta charset=utf-8><body><div><table><tr><p><b><i>"
        f"<article class=><h1>깨진 쪽</h2><p>{lines}</b></i></td></article></div></body>"
        "<script>if (1 < 2) { document.write('</p') <!-- \x00"
    )
    return Response(html.encode() + b"\xff\xfe\xc0<p", media_type="text/html")


def wrong_charset(url: str) -> Response:
    """EUC-KR bytes that header and meta element call UTF-8."""
    body = sound_article("잘못 적힌 문자 집합", url).encode("euc-kr", "xmlcharrefreplace")
    return Response(body, media_type=_HTML)


def broken_feed(base: str) -> Response:
    """RSS that ends in the middle of its second entry."""
    xml = (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>깨진 소식'
        f"</title><item><title>첫 소식</title><link>{base}{MANY[0]}</link></item>"
        "<item><title>둘째 & 소식</title><link>"
    )
    return Response(xml.encode(), media_type="application/rss+xml; charset=utf-8")


class HangingResponse(Response):
    """Sends nothing for `seconds`, then its status; ends early when the client leaves."""

    def __init__(self, seconds: float) -> None:
        super().__init__(status_code=504)
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                while (await receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            await super().__call__(scope, receive, send)


def slow(config: SimwebConfig) -> Response:
    """A page that drips, a byte each tenth of a second for `hang_seconds`."""

    async def drip() -> AsyncIterator[bytes]:
        yield b"<!DOCTYPE html><html><body><p>"
        for _ in range(max(round(config.hang_seconds / _DRIP), 1)):
            await asyncio.sleep(_DRIP)
            yield b"."

    return StreamingResponse(drip(), media_type=_HTML)


def big(config: SimwebConfig) -> Response:
    """A body of `big_bytes` bytes, streamed, without Content-Length."""

    async def body() -> AsyncIterator[bytes]:
        chunk = "도서관 이야기 ".encode() * (_CHUNK // 20)
        left = config.big_bytes
        while left > 0:
            yield chunk[:left]
            left -= len(chunk)

    return StreamingResponse(body(), media_type=_HTML)


def gzip_bomb(config: SimwebConfig) -> Response:
    """A small packed body that unpacks to `big_bytes` zeros (in whole MiB)."""

    async def body() -> AsyncIterator[bytes]:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        block = bytes(1024 * 1024)
        for _ in range(max(config.big_bytes // len(block), 1)):
            yield packer.compress(block)
            await asyncio.sleep(0)
        yield packer.flush()

    return StreamingResponse(body(), headers=_PACKED)


class Refusals:
    """429 with Retry-After; sound once it has passed. A retry before that is counted.

    Addresses with different `key=` are refused apart from each other.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._since: dict[str, float] = {}

    def answer(self, request: Request) -> Response:
        """Refused, or the page once the pause has passed."""
        key = request.query_params.get("key", "")
        now = self._world.wall()
        since = self._since.setdefault(key, now)
        if now - since >= _RETRY_AFTER:
            return HTMLResponse(sound_article("다시 찾은 도서관", _url(request)))
        if now > since:
            self._world.early_retries += 1
        return Response("", 429, headers=_LATER)


def fault_kinds(world: World) -> dict[str, Callable[[Request], Response]]:
    """The answer to /fault/KIND, by kind."""
    config = world.config

    def loop(request: Request) -> Response:
        turn = "a" if request.query_params.get("turn") == "b" else "b"
        return _redirect(f"/fault/redirect-loop?turn={turn}")

    return {
        "500": lambda _: Response("내부 오류", 500, media_type="text/plain; charset=utf-8"),
        "503": lambda _: Response("", 503, headers=_LATER),
        "404": lambda _: Response("", 404),
        "429": Refusals(world).answer,
        "hang": lambda _: HangingResponse(config.hang_seconds),
        "slow": lambda _: slow(config),
        "redirect-loop": loop,
        "redirect-private": lambda _: _redirect("http://10.255.255.1/private"),
        "redirect-metadata": lambda _: _redirect("http://169.254.169.254/latest/meta-data/"),
        "redirect-file": lambda _: _redirect("file:///etc/hostname"),
        "big": lambda _: big(config),
        "gzip-bomb": lambda _: gzip_bomb(config),
        "broken-gzip": lambda request: broken_gzip(_url(request)),
        "cut-off": lambda request: cut_off(_url(request)),
        "broken-html": lambda _: broken_html(),
        "wrong-charset": lambda request: wrong_charset(_url(request)),
        "empty": lambda _: Response(b"", media_type=_HTML),
        "binary": lambda _: Response(bytes(range(256)) * 64, media_type=_HTML),
        "broken-feed": lambda request: broken_feed(base_address(request)),
    }


def fault_router(world: World) -> APIRouter:
    """Routes under /fault."""
    router = APIRouter()
    kinds = fault_kinds(world)

    @router.get("/fault")
    @router.get("/fault/")
    async def overview() -> Response:
        return links_page("고장", [*(f"/fault/{kind}" for kind in kinds), MANY[0]])

    @router.get("/fault/many")
    async def many() -> Response:
        return links_page("한 기사, 여러 주소", list(MANY))

    @router.get("/fault/many/1")
    @router.get("/fault/many/1/")
    @router.get("/fault/many/1/amp")
    @router.get("/fault//many/1")
    async def one_of_many(request: Request) -> Response:
        url = base_address(request) + MANY[0]
        return HTMLResponse(sound_article("여러 주소의 기사", url))

    @router.get("/fault/{kind}")
    async def fault(request: Request, kind: str) -> Response:
        answer = kinds.get(kind)
        if answer is None:
            raise HTTPException(404, f"no such fault; kinds are {', '.join(kinds)}")
        return answer(request)

    return router


def _redirect(location: str) -> Response:
    return Response("", 302, headers={"Location": location})


def _url(request: Request) -> str:
    return base_address(request) + request.url.path
