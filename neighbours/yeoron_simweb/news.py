"""The news site: front page, lists, feeds, sitemaps, articles (plain HTTP, conditional GET by
RFC 9110, section 13).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from heapq import merge
from itertools import islice

from fastapi import APIRouter, HTTPException
from starlette.requests import Request
from starlette.responses import Response

from yeoron_simweb import feeds, habits, markup
from yeoron_simweb.charset import encode_euckr
from yeoron_simweb.config import NEWS_SECTIONS
from yeoron_simweb.library import LibraryItem
from yeoron_simweb.world import World

_UTF8_SECTIONS = NEWS_SECTIONS[:3]
_EUCKR = "euckr"


def base_address(request: Request) -> str:
    """Scheme and authority that the client used, without a slash at the end."""
    return str(request.base_url).rstrip("/")


def http_date(moment: float) -> str:
    """Unix seconds as an HTTP date."""
    return format_datetime(datetime.fromtimestamp(int(moment), UTC), usegmt=True)


def unchanged(request: Request, etag: str, modified: float) -> bool:
    """Whether the client's copy is current; If-None-Match goes before If-Modified-Since."""
    match = request.headers.get("if-none-match")
    if match is not None:
        tags = {tag.strip().removeprefix("W/") for tag in match.split(",")}
        return "*" in tags or etag in tags
    since = request.headers.get("if-modified-since")
    if since is None:
        return False
    try:
        return int(modified) <= parsedate_to_datetime(since).timestamp()
    except (ValueError, TypeError, OverflowError):
        return False


def validators(etag: str, modified: float) -> dict[str, str]:
    """The headers ETag and Last-Modified."""
    return {"ETag": etag, "Last-Modified": http_date(modified), "Cache-Control": "no-cache"}


class NewsSite:
    """Answers for the pages under /news; `section` None means all UTF-8 sections together."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._habits = frozenset(world.config.habits)

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
            return Response(status_code=304, headers=validators(etag, modified))
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
        time = self._shown if section == "life" and "relative-times" in self._habits else None
        html = markup.list_page(title, path, items, page, pages, charset, time)
        return encoded(html, "text/html", charset, {"Cache-Control": "no-cache"})

    def article(self, request: Request, key: str, behind: str = "") -> Response:
        """An article; its first fetch may fail as `fault_rate` says.

        behind  the habit, if any, that led to this address: `refresh`, or `frames`
        """
        item = self._world.find(key, *NEWS_SECTIONS)
        if item is None:
            raise HTTPException(404, "no such article")
        if self._world.fails_once(item):
            return Response("내부 오류", 500, media_type="text/plain; charset=utf-8")
        if item.part == "politics" and (leads := self._leads(item, behind)) is not None:
            return encoded(leads, "text/html", "utf-8", {})
        self._world.fetched(item)
        etag, modified = f'"{item.id}"', self._world.modified(item)
        if unchanged(request, etag, modified):
            return Response(status_code=304, headers=validators(etag, modified))
        siblings = self._world.library.parts[item.part][max(item.number - 3, 0) : item.number]
        charset = named = charset_of(item.part)
        if item.part == _EUCKR and "false-charset" in self._habits:
            charset, named = habits.false_charset(item)
        base = base_address(request)
        html = markup.article_page(
            item,
            base,
            related=siblings,
            charset=named,
            canonical=f"{base}/news" if "one-canonical" in self._habits else None,
            time=self._time_of(item),
        )
        return encoded(html, "text/html", charset, validators(etag, modified), named)

    def _leads(self, item: LibraryItem, behind: str) -> str | None:
        """The page that stands before an article and leads to it, if any."""
        framed = "frames" in self._habits
        if "refresh" in self._habits and not behind:
            place = "PostFrame" if framed else "PostView"
            return habits.refresh_page(f"/news/{place}.nhn?blogId=yeoron&logNo={item.id}")
        if framed and behind != "frames":
            return habits.frames_page(item, f"/news/PostView.nhn?blogId=yeoron&logNo={item.id}")
        return None

    def _time_of(self, item: LibraryItem) -> str | None:
        """All that an article says of its time; None where it says when it was published."""
        if item.part == "life" and "relative-times" in self._habits:
            return self._shown(item)
        undated = item.part == "society" and "pictures" in self._habits
        return "" if undated and habits.is_undated(item) else None

    def _shown(self, item: LibraryItem) -> str:
        return habits.shown_time(item.event, self._world.clock.event)[0]


def charset_of(section: str | None) -> str:
    """Character set in which a section is served."""
    return "euc-kr" if section == _EUCKR else "utf-8"


def encoded(
    text: str, media: str, charset: str, headers: dict[str, str], named: str | None = None
) -> Response:
    """A response in this character set, which its Content-Type names, or `named` in its place."""
    body = encode_euckr(text) if charset == "euc-kr" else text.encode()
    kind = f"{media}; charset={named or charset}"
    return Response(body, headers={**headers, "Content-Type": kind})


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

    @router.get("/news/PostFrame.nhn")
    async def framed(request: Request, logNo: str) -> Response:  # noqa: N803 - the site's name
        return site.article(request, logNo, "refresh")

    @router.get("/news/PostView.nhn")
    async def viewed(request: Request, logNo: str) -> Response:  # noqa: N803 - the site's name
        return site.article(request, logNo, "frames")

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
            pictures = section == "society" and "pictures" in config.habits
            render = feeds.picture_sitemap if pictures else feeds.news_sitemap
            return render(items, base, charset)

        return site.listing(request, section, sitemap_items, "application/xml", render)

    return router
