"""sources.toml of the simulated web: one source for each part, so that none reads another's."""

from __future__ import annotations

import json
from collections.abc import Sequence

PART_OF_SOURCE = {
    "sim-feed": "politics",
    "sim-sitemap": "society",
    "sim-list": "life",
    "sim-euckr": "euckr",
    "sim-board": "board",
    "sim-comments": "comments",
}
"""Which part of the simulated web each source reads."""

_Fields = dict[str, object]
_MANY: _Fields = {"max_items": 5000, "pages": 200}
_LIST: _Fields = {
    "items": "li.headline",
    "link": "a[href]",
    "links": "/news/a/",
    "title": "a",
    "time": "time",
    "next": "a[rel=next]",
}
_BOARD = {
    "answers": "auto",
    "items": "article.post",
    "id": "@data-id",
    "link": "h2 a",
    "title": "h2",
    "time": "time",
    "text": "div.body",
    "author": ".author",
}
_OLD_BOARD: _Fields = {
    "items": "tr:has(td.date)",
    "link": "a[href]",
    "links": "/view.php",
    "title": "a",
    "time": "td.date",
    "next": "td.page b + a",
}
_COMMENTS: _Fields = {
    "items": "comments",
    "id": "id",
    "text": "body",
    "time": "created_at",
    "author": "author",
    "link": "article_url",
    "next": "next_cursor",
    "cursor": "cursor",
}


def sources_toml(
    base_url: str, *, every: float = 1.0, rendered: bool = True, habits: Sequence[str] = ()
) -> str:
    """Text of a sources.toml for the simulated web at `base_url`.

    `every` is the seconds between polls; `rendered` False leaves the board out (no browser), but
    for an old one; `habits` are those of the simulated web (`SimwebConfig.habits`).
    """
    base = base_url.rstrip("/")
    korean: _Fields = {"timezone": "Asia/Seoul"}
    zone = korean if "relative-times" in habits else {}
    board: list[tuple[str, str, str, _Fields]] = []
    if "old-board" in habits:
        board = [("sim-board", "page", "/bbs/zboard.php?id=free", _MANY | _OLD_BOARD | korean)]
    elif rendered:
        board = [("sim-board", "rendered", "/board", _MANY | _BOARD)]
    sources: list[tuple[str, str, str, _Fields]] = [
        ("sim-feed", "feed", "/news/politics/rss.xml", {}),
        ("sim-sitemap", "sitemap", "/news/society/sitemap.xml", {"max_items": 5000}),
        ("sim-list", "page", "/news/life/list", _MANY | _LIST | zone),
        ("sim-euckr", "feed", "/news/euckr/rss.xml", {}),
        *board,
        ("sim-comments", "comments", "/comments/api?limit=50", _MANY | _COMMENTS),
    ]
    lines = [f"# Sources of the simulated web at {base}"]
    for name, kind, path, settings in sources:
        group = {"sim-board": "board", "sim-comments": "comments"}.get(name, "news")
        of_all = {"group": group, "language": "ko", "timezone": "UTC", "every": every}
        source = {"name": name, "kind": kind, "url": base + path, **of_all, **settings}
        lines += ["", "[[source]]", *(f"{k} = {json.dumps(v)}" for k, v in source.items())]
    return "\n".join(lines) + "\n"
