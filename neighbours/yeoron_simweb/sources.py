"""sources.toml of the simulated web: one source for each part, so that none reads another's."""

from __future__ import annotations

from collections.abc import Sequence

TEMPLATE = """\
# Sources of the simulated web at {base}

[[source]]
name = "sim-feed"
kind = "feed"
url = "{base}/news/politics/rss.xml"
group = "news"
language = "ko"
timezone = "UTC"
every = {every}

[[source]]
name = "sim-sitemap"
kind = "sitemap"
url = "{base}/news/society/sitemap.xml"
group = "news"
language = "ko"
timezone = "UTC"
every = {every}
max_items = 5000

[[source]]
name = "sim-list"
kind = "page"
url = "{base}/news/life/list"
group = "news"
language = "ko"
timezone = "{zone}"
every = {every}
max_items = 5000
pages = 200
items = "li.headline"
link = "a[href]"
links = "/news/a/"
title = "a"
time = "time"
next = "a[rel=next]"

[[source]]
name = "sim-euckr"
kind = "feed"
url = "{base}/news/euckr/rss.xml"
group = "news"
language = "ko"
timezone = "UTC"
every = {every}
{board}
[[source]]
name = "sim-comments"
kind = "comments"
url = "{base}/comments/api?limit=50"
group = "comments"
language = "ko"
timezone = "UTC"
every = {every}
max_items = 5000
pages = 200
items = "comments"
id = "id"
text = "body"
time = "created_at"
author = "author"
link = "article_url"
next = "next_cursor"
cursor = "cursor"
"""

_BOARD = """
[[source]]
name = "sim-board"
kind = "rendered"
url = "{base}/board"
group = "board"
language = "ko"
timezone = "UTC"
every = {every}
max_items = 5000
pages = 200
answers = "auto"
items = "article.post"
id = "@data-id"
link = "h2 a"
title = "h2"
time = "time"
text = "div.body"
author = ".author"
"""

_OLD_BOARD = """
[[source]]
name = "sim-board"
kind = "page"
url = "{base}/bbs/zboard.php?id=free"
group = "board"
language = "ko"
timezone = "Asia/Seoul"
every = {every}
max_items = 5000
pages = 200
items = "tr:has(td.date)"
link = "a[href]"
links = "/view.php"
title = "a"
time = "td.date"
next = "td.page b + a"
"""

PART_OF_SOURCE = {
    "sim-feed": "politics",
    "sim-sitemap": "society",
    "sim-list": "life",
    "sim-euckr": "euckr",
    "sim-board": "board",
    "sim-comments": "comments",
}
"""Which part of the simulated web each source reads."""


def sources_toml(
    base_url: str, *, every: float = 1.0, rendered: bool = True, habits: Sequence[str] = ()
) -> str:
    """Text of a sources.toml for the simulated web at `base_url`.

    `every` is the seconds between polls; `rendered` False leaves the board out (no browser), but
    for an old one; `habits` are those of the simulated web (`SimwebConfig.habits`).
    """
    base = base_url.rstrip("/")
    board = _OLD_BOARD if "old-board" in habits else _BOARD if rendered else ""
    zone = "Asia/Seoul" if "relative-times" in habits else "UTC"
    board = board.format(base=base, every=every)
    return TEMPLATE.format(base=base, every=every, board=board, zone=zone)
