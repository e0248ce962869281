"""Misbehaviour on request, under /fault/: everything a crawler must survive.

`/fault/` links one page of each kind; `/fault/many` links one article under many addresses.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable

from fastapi import APIRouter, HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from yeoron_simweb import fault_pages as pages
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.news import base_address
from yeoron_simweb.world import World

_CHUNK = 64 * 1024
_RETRY_AFTER = 1.0
_DRIP = 0.1
_HTML = "text/html; charset=utf-8"
_REDIRECTS = {
    "redirect-private": "http://10.255.255.1/private",
    "redirect-metadata": "http://169.254.169.254/latest/meta-data/",
    "redirect-file": "file:///etc/hostname",
}


class HangingResponse(Response):
    """Sends nothing for `seconds`, then its status; ends early when the client leaves."""

    def __init__(self, seconds: float) -> None:
        super().__init__(status_code=504)
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait, then answer."""
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

    headers = {"Content-Encoding": "gzip", "Content-Type": _HTML}
    return StreamingResponse(body(), headers=headers)


class Refusals:
    """429 with Retry-After; sound once it has passed. A retry before that is counted.

    Addresses with different `key=` are refused apart from each other.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._since: dict[str, float] = {}

    def answer(self, request: Request) -> Response:
        """The answer to one request."""
        key = request.query_params.get("key", "")
        now = self._world.wall()
        since = self._since.setdefault(key, now)
        if now - since >= _RETRY_AFTER:
            return HTMLResponse(pages.sound_article("다시 찾은 도서관", _url(request)))
        if now > since:
            self._world.early_retries += 1
        return pages.refused(429, _RETRY_AFTER)


def fault_kinds(world: World) -> dict[str, Callable[[Request], Response]]:
    """The answer to /fault/KIND, by kind."""
    config = world.config

    def loop(request: Request) -> Response:
        turn = "a" if request.query_params.get("turn") == "b" else "b"
        return pages.redirect(f"/fault/redirect-loop?turn={turn}")

    return {
        "500": lambda _: Response("내부 오류", 500, media_type="text/plain; charset=utf-8"),
        "503": lambda _: pages.refused(503, _RETRY_AFTER),
        "404": lambda _: Response("", 404),
        "429": Refusals(world).answer,
        "hang": lambda _: HangingResponse(config.hang_seconds),
        "slow": lambda _: slow(config),
        "redirect-loop": loop,
        **{kind: _redirecting(location) for kind, location in _REDIRECTS.items()},
        "big": lambda _: big(config),
        "gzip-bomb": lambda _: gzip_bomb(config),
        "broken-gzip": lambda request: pages.broken_gzip(_url(request)),
        "cut-off": lambda request: pages.cut_off(_url(request)),
        "broken-html": lambda _: pages.broken_html(),
        "wrong-charset": lambda request: pages.wrong_charset(_url(request)),
        "empty": lambda _: pages.empty(),
        "binary": lambda _: pages.binary(),
        "broken-feed": lambda request: pages.broken_feed(base_address(request)),
    }


def fault_router(world: World) -> APIRouter:
    """Routes under /fault."""
    router = APIRouter()
    kinds = fault_kinds(world)

    @router.get("/fault")
    @router.get("/fault/")
    async def overview() -> Response:
        return pages.links_page("고장", [*(f"/fault/{kind}" for kind in kinds), pages.MANY[0]])

    @router.get("/fault/many")
    async def many() -> Response:
        return pages.links_page("한 기사, 여러 주소", list(pages.MANY))

    @router.get("/fault/many/1")
    @router.get("/fault/many/1/")
    @router.get("/fault/many/1/amp")
    @router.get("/fault//many/1")
    async def one_of_many(request: Request) -> Response:
        url = base_address(request) + pages.MANY[0]
        return HTMLResponse(pages.sound_article("여러 주소의 기사", url))

    @router.get("/fault/{kind}")
    async def fault(request: Request, kind: str) -> Response:
        answer = kinds.get(kind)
        if answer is None:
            raise HTTPException(404, f"no such fault; kinds are {', '.join(kinds)}")
        return answer(request)

    return router


def _redirecting(location: str) -> Callable[[Request], Response]:
    return lambda _: pages.redirect(location)


def _url(request: Request) -> str:
    return base_address(request) + request.url.path
