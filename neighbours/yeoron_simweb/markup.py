"""HTML of the news site and the board: realistic, with navigation, adverts and structured data."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from yeoron_simweb.library import LibraryItem

SECTION_NAMES = {"politics": "정치", "society": "사회", "life": "생활", "euckr": "지난 신문"}
PAPER = "여론일보"

_STYLE = (
    "body{font-family:sans-serif;max-width:60rem;margin:auto}nav a{margin-right:1rem}"
    ".ad{background:#eee;padding:1rem}footer{color:#777}"
)


@dataclass(frozen=True)
class MarkupPage:
    """Head and body of an HTML page; `head` holds ready markup."""

    title: str
    body: str
    head: str = ""
    charset: str = "utf-8"

    def html(self) -> str:
        return (
            f'<!DOCTYPE html>\n<html lang="ko">\n<head>\n<meta charset="{self.charset}">\n'
            f"<title>{escape(self.title)}</title>\n"
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"{self.head}<style>{_STYLE}</style>\n</head>\n<body>\n{self.body}</body>\n</html>\n"
        )


def paragraphs(text: str) -> str:
    """Text as <p> elements, one for each line that holds something."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(f"<p>{escape(line)}</p>" for line in lines if line)


def navigation() -> str:
    """The head of every page of the news site."""
    links = "".join(
        f'<a href="/news/{section}/list">{name}</a>' for section, name in SECTION_NAMES.items()
    )
    return (
        f'<header class="gnb"><div class="logo"><a href="/news">{PAPER}</a></div>'
        f'<nav role="navigation">{links}<a href="/board">게시판</a>'
        '<a href="/private/account">내 정보</a></nav></header>\n'
    )


def footer() -> str:
    """The foot of every page of the news site."""
    return (
        '<footer id="footer"><ul><li><a href="/private/terms">이용약관</a></li>'
        '<li><a href="/private/privacy">개인정보처리방침</a></li></ul>'
        f"<p>Copyright ⓒ {PAPER}. 무단전재 및 재배포 금지.</p></footer>\n"
    )


def _advert(place: str) -> str:
    return (
        f'<aside class="ad ad-{place}" aria-label="광고"><a href="/private/ad?place={place}" '
        'rel="nofollow sponsored">지금 구독하면 첫 달 무료</a></aside>\n'
    )


def article_page(
    item: LibraryItem,
    base: str,
    *,
    related: Sequence[LibraryItem] = (),
    charset: str = "utf-8",
    canonical: str | None = None,
    time: str | None = None,
) -> str:
    """An article; `base` is the address of the site without a slash at its end.

    canonical  the address that it names as canonical, when it is not its own
    time       all that it says of its time, when that is not when it was published
    """
    url = f"{base}/news/a/{item.id}"
    canonical = escape(canonical or url)
    published = {"datePublished": item.iso, "dateModified": item.iso} if time is None else {}
    meta = f'<meta property="article:published_time" content="{item.iso}">\n'
    dated = _time(item)
    if time is not None:
        meta, dated = "", f'<span class="date">{time}</span>'
    section = SECTION_NAMES[item.part]
    about = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": item.title,
        **published,
        "mainEntityOfPage": url,
        "articleSection": section,
        "author": [{"@type": "Person", "name": item.author}],
        "publisher": {"@type": "Organization", "name": PAPER},
    }
    head = (
        f'<link rel="canonical" href="{canonical}">\n'
        f'<link rel="amphtml" href="{escape(url)}/amp">\n'
        '<meta property="og:type" content="article">\n'
        f'<meta property="og:title" content="{escape(item.title)}">\n'
        f'<meta property="og:url" content="{canonical}">\n'
        f'<meta property="og:site_name" content="{PAPER}">\n'
        f'{meta}<meta property="article:section" content="{section}">\n'
        f'<script type="application/ld+json">{script_json(about)}</script>\n'
    )
    body = (
        navigation()
        + _advert("top")
        + '<main id="content">\n<article class="article">\n'
        + f'<h1 class="headline">{escape(item.title)}</h1>\n'
        + f'<div class="byline"><span class="author">{item.author} 기자</span> {dated}</div>\n'
        + f'<div class="article-body" itemprop="articleBody">\n{paragraphs(item.text)}\n</div>\n'
        + "</article>\n"
        + _advert("middle")
        + _related(related)
        + "</main>\n"
        + footer()
    )
    return MarkupPage(f"{item.title} - {PAPER}", body, head, charset).html()


def _time(item: LibraryItem) -> str:
    return f'<time datetime="{item.iso}">{item.moment:%Y-%m-%d %H:%M} UTC</time>'


def _related(items: Sequence[LibraryItem]) -> str:
    links = "".join(
        f'<li><a href="/news/a/{item.id}">{escape(item.title)}</a></li>' for item in items
    )
    return f'<section class="related"><h2>많이 본 기사</h2><ul>{links}</ul></section>\n'


def list_page(
    title: str,
    path: str,
    items: Sequence[LibraryItem],
    page: int,
    pages: int,
    charset: str = "utf-8",
    time: Callable[[LibraryItem], str] | None = None,
) -> str:
    """One page of a listing, with links to the page before and the page after.

    time  what it says of an item's time, when that is not when it was published
    """
    rows = "\n".join(
        f'<li class="headline"><a href="/news/a/{item.id}">{escape(item.title)}</a> '
        f"{f'<time>{time(item)}</time>' if time else _time(item)}</li>"
        for item in items
    )
    pager = "".join(
        f'<a rel="{rel}" href="{path}?page={number}">{label}</a> '
        for rel, number, label in (("prev", page - 1, "이전"), ("next", page + 1, "다음"))
        if 1 <= number <= pages
    )
    body = (
        navigation()
        + f'<main>\n<h1>{escape(title)}</h1>\n<ul class="headlines">\n{rows}\n</ul>\n'
        + f'<div class="pager">{pager}</div>\n'
        + f'<p class="more"><a href="/private/archive?from={quote(path)}">지난 기사 전체</a></p>\n'
        + "</main>\n"
        + _advert("bottom")
        + footer()
    )
    return MarkupPage(f"{title} - {PAPER}", body, feed_links(), charset).html()


def feed_links() -> str:
    """Autodiscovery of the feeds."""
    return (
        f'<link rel="alternate" type="application/rss+xml" title="{PAPER}" href="/news/rss.xml">\n'
        f'<link rel="alternate" type="application/atom+xml" title="{PAPER}" '
        'href="/news/atom.xml">\n'
    )


def script_json(value: object) -> str:
    """JSON that may stand inside a <script> element, in ASCII."""
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e")
