"""Habits of real boards, blogs and templates, each asked for by its name (`config.HABITS`).

Whatever a site's habits are, the simulated web knows which texts there are, when each was written,
and how exactly anybody who reads it could know that: `articles` is that truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from yeoron_simweb.library import LibraryItem
from yeoron_simweb.markup import PAPER, MarkupPage
from yeoron_simweb.world import World

KST = ZoneInfo("Asia/Seoul")

_CHARSETS = (("euc-kr", "utf-8"), ("euc-kr", "iso-8859-1"), ("utf-8", "euc-kr"))
_IFRAME = '<iframe id="mainFrame" name="mainFrame" src="{url}" scrolling="auto"></iframe>\n'
_FRAMESET = """<html><head><title>{title}</title></head>
<frameset rows="0,*" border="0"><frame name="topFrame" src="/private/menu">
<frame name="mainFrame" src="{url}"><noframes><body>프레임을 지원하지 않는 브라우저에서는 볼 수
없습니다. 다른 브라우저로 다시 찾아 주십시오.</body></noframes></frameset></html>
"""


def false_charset(item: LibraryItem) -> tuple[str, str]:
    """In which character set an article is, and which its page and its header name."""
    return _CHARSETS[_draw(item, len(_CHARSETS))]


def is_undated(item: LibraryItem) -> bool:
    """Whether the page of a picture says no time, as every third does."""
    return _draw(item, 3) == 0


def shown_time(event: float, now: float) -> tuple[str, str]:
    """An event time as a board shows it at `now` (both Unix seconds, shown in KST).

    Returns the text and what it is exact to: `minute`, `hour` or `day`.
    """
    when, today = datetime.fromtimestamp(event, KST), datetime.fromtimestamp(now, KST)
    past = now - event
    if past < 60:
        return "방금 전", "minute"
    if past < 3600:
        return f"{past // 60:.0f}분 전", "minute"
    if past < 6 * 3600:
        return f"{past // 3600:.0f}시간 전", "hour"
    days = (today.date() - when.date()).days
    if days == 0:
        return f"{when:%H:%M}", "minute"
    return (f"어제 {when:%H:%M}", "minute") if days == 1 else (f"{when:%y/%m/%d}", "day")


def frames_page(item: LibraryItem, url: str) -> str:
    """A page that shows `url` in a frame of a frameset, or of its body, and has nothing else."""
    title = f"{PAPER} 블로그"
    if _draw(item, 2):
        return _FRAMESET.format(title=title, url=url)
    return MarkupPage(title, _IFRAME.format(url=url)).html()


def refresh_page(url: str) -> str:
    """A page that sends its reader on to `url`, as boards do after a form."""
    head = f'<meta http-equiv="Refresh" content="0; URL={url}">\n'
    return MarkupPage(PAPER, "<p>잠시만 기다려 주십시오.</p>\n", head).html()


def articles(world: World) -> Iterator[dict[str, Any]]:
    """Every visible text, in event order: `exact` is None where nothing says when it was written,
    `day`, `hour` or `minute`.
    """
    world.tick()
    for item in world.library.items[: len(world.clock.published)]:
        yield {
            "id": item.id,
            "part": item.part,
            "title": item.title,
            "text": item.text,
            "time": item.iso,
            "exact": _exact(item, world),
        }


def _exact(item: LibraryItem, world: World) -> str | None:
    habits = world.config.habits
    if item.part == "life" and "relative-times" in habits:
        return shown_time(item.event, world.clock.event)[1]
    if item.part == "society" and "pictures" in habits and is_undated(item):
        return None
    return "minute"


def _draw(item: LibraryItem, n: int) -> int:
    """A number below `n` that an item always has."""
    return int(item.id, 16) % n
