"""The news site: front page, lists, feeds, sitemaps, articles (plain HTTP, conditional GET)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from heapq import merge
from itertools import islice

from fastapi import APIRouter, HTTPException
from starlette.requests import Request
from starlette.responses import Response

from yeoron_simweb import feeds, markup
from yeoron_simweb.charset import encode_euckr
from yeoron_simweb.conditional import not_modified, unchanged, validators
from yeoron_simweb.config import NEWS_SECTIONS
from yeoron_simweb.library import LibraryItem
from yeoron_simweb.world import World

_UTF8_SECTIONS = NEWS_SECTIONS[:3]
_EUCKR = "euckr"


def base_address(request: Request) -> str:
    """Scheme and authority that the client used, without a slash at the end."""
    return str(request.base_url).rstrip("/")


class NewsSite:
    """Answers for the pages under /news; `section` None means all UTF-8 sections together."""

    def __init__(self, world: World) -> None:
        self._world = world

    def visible(self, section: str | None) -> list[Sequence[LibraryItem]]:
        """Visible items by section, oldest first."""
        if section is not None and section not in NEWS_SECTIONS:
            raise HTTPException(404, "no such section")
        return [self._world.read(part) for part in ([section] if section else _UTF8_SECTIONS)]

    def newest(
        self, visible: Sequence[Sequence[LibraryItem]], first: int, count: int
    ) -> list[LibraryItem]:
        """`count` items from position `first` on, newest first."""
        streams = [reversed(items) for items in visible]
        ordered = merge(*streams, key=lambda item: -item.event)
        return list(islice(ordered, first, first + count))

    def listing(
        self,
        request: Request,
        section: str | None,
        count: int,
        media: str,
        render: Callable[[list[LibraryItem], str, str, str], str],
    ) -> Response:
        """A feed or sitemap of the newest `count` items, with validators."""
        visible = self.visible(section)
        sizes = [len(items) for items in visible]
        base, path = base_address(request), request.url.path
        seed = f"{base}{path} {sizes} {self._world.library.items[0].id}"
        etag = f'"{hashlib.blake2b(seed.encode(), digest_size=8).hexdigest()}"'
        last = [items[-1] for items in visible if items]
        modified = max((self._world.modified(item) for item in last), default=0.0)
        if unchanged(request, etag, modified):
            return not_modified(etag, modified)
        charset = charset_of(section)
        body = render(self.newest(visible, 0, count), base, path, charset)
        return encoded(body, media, charset, validators(etag, modified))

    def page(self, section: str | None, page: int, path: str) -> Response:
        """Page `page` (from 1) of a list."""
        visible = self.visible(section)
        size = self._world.config.page_items
        pages = max(-(-sum(map(len, visible)) // size), 1)
        if not 1 <= page <= pages:
            raise HTTPException(404, "no such page")
        items = self.newest(visible, (page - 1) * size, size)
        charset = charset_of(section)
        title = markup.SECTION_NAMES[section] if section else "최신 기사"
        html = markup.list_page(title, path, items, page, pages, charset)
        return encoded(html, "text/html", charset, {"Cache-Control": "no-cache"})

    def article(self, request: Request, key: str) -> Response:
        """An article; its first fetch may fail as `fault_rate` says."""
        item = self._world.find(key, *NEWS_SECTIONS)
        if item is None:
            raise HTTPException(404, "no such article")
        if self._world.fails_once(item):
            return Response("내부 오류", 500, media_type="text/plain; charset=utf-8")
        self._world.fetched(item)
        etag, modified = f'"{item.id}"', self._world.modified(item)
        if unchanged(request, etag, modified):
            return not_modified(etag, modified)
        siblings = self._world.library.parts[item.part][max(item.number - 3, 0) : item.number]
        charset = charset_of(item.part)
        html = markup.article_page(item, base_address(request), related=siblings, charset=charset)
        return encoded(html, "text/html", charset, validators(etag, modified))


def charset_of(section: str | None) -> str:
    """Character set in which a section is served."""
    return "euc-kr" if section == _EUCKR else "utf-8"


def encoded(text: str, media: str, charset: str, headers: dict[str, str]) -> Response:
    """A response in this character set, which its Content-Type names."""
    body = encode_euckr(text) if charset == "euc-kr" else text.encode()
    return Response(body, headers={**headers, "Content-Type": f"{media}; charset={charset}"})


def news_router(world: World) -> APIRouter:
    """Routes under /news; each listing exists for all sections and for each one."""
    router = APIRouter()
    site = NewsSite(world)
    config = world.config
    # An entry that nobody read must not fall off the end while the clock waits for its reader.
    feed_items = max(config.feed_items, config.max_backlog)
    sitemap_items = max(config.sitemap_items, config.max_backlog)

    @router.get("/news")
    @router.get("/news/")
    async def front() -> Response:
        return site.page(None, 1, "/news/list")

    @router.get("/news/a/{key}")
    @router.get("/news/a/{key}/amp")
    async def article(request: Request, key: str) -> Response:
        return site.article(request, key)

    @router.get("/news/list")
    @router.get("/news/{section}/list")
    async def listing(request: Request, section: str | None = None, page: int = 1) -> Response:
        return site.page(section, page, request.url.path)

    @router.get("/news/rss.xml")
    @router.get("/news/{section}/rss.xml")
    async def rss(request: Request, section: str | None = None) -> Response:
        media = "application/rss+xml"
        return site.listing(request, section, feed_items, media, feeds.rss)

    @router.get("/news/atom.xml")
    @router.get("/news/{section}/atom.xml")
    async def atom(request: Request, section: str | None = None) -> Response:
        media = "application/atom+xml"
        return site.listing(request, section, feed_items, media, feeds.atom)

    @router.get("/news/sitemap.xml")
    @router.get("/news/{section}/sitemap.xml")
    async def sitemap(request: Request, section: str | None = None) -> Response:
        def render(items: list[LibraryItem], base: str, _path: str, charset: str) -> str:
            return feeds.news_sitemap(items, base, charset)

        return site.listing(request, section, sitemap_items, "application/xml", render)

    return router
