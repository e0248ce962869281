"""When a page was published, according to the page itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, date, datetime, time
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from htmldate import find_date

from embedding.crawl.jsonld import described, texts_of, types_of
from embedding.crawl.origins import DateOrigin, Publication
from embedding.sources.times import parse_time

_META = (
    "article:published_time", "og:article:published_time", "og:regdate", "datepublished",
    "article:published", "article.published", "publish_date", "publish-date", "publishdate",
    "published_time", "date.issued", "dc.date.issued", "dcterms.issued", "parsely-pub-date",
    "sailthru.date", "article_date_original", "originalpublicationdate",
    "cxenseparse:recs:publishtime", "pubdate", "og:pubdate", "bt:pubdate", "published_at",
    "publication_date", "publish_time", "ptime", "og:release_date", "article:publish_time",
    "rnews:datepublished", "dcsext.articlefirstpublished", "shareaholic:article_published_time",
)  # fmt: skip
_VAGUE_META = (
    "dcterms.created", "dc.date.created", "datecreated", "dc.date", "dcterms.date", "date",
    "date.created", "article:created_time", "article.created",
)  # fmt: skip
"""Metadata that is only called a date, which may be another: what readers see goes first."""
_ARTICLES = {"Report", "Review", "Recipe", "VideoObject", "AudioObject", "PodcastEpisode"}
_NO_PAGES = {"ItemList", "BreadcrumbList", "Comment", "WebSite", "Person"}
_DATE_KEYS = ("datePublished", "dateCreated", "uploadDate")
_OTHERS = re.compile(
    r"comment|cmt|repl(?:y|ies)|댓글|답글|related|recommend|관련|sidebar|widget|latest|popular|ranking|"
    r"teaser|more-?(?:news|stories)|other-?(?:news|articles)|prev|next|footer|modif|update|"
    r"(?:^|[-_ ])nav",
    re.IGNORECASE,
)
"""Classes and ids of what stands beside an article, and of when it was changed."""
_NOT_THE_PAGE = re.compile(
    r"(?:^|[-_ ])(?:comment(?!s?-?count)|cmt|repl(?:y|ies)|related|recommend|veranstaltung|"
    r"events?(?:$|[-_ ]))|댓글|답글|관련",
    re.IGNORECASE,
)
"""Classes and ids of what is surely no part of an article; all others may hold its date."""
_WHOLE = ("html", "body", "article", "main", "header", "h1")
_DATE_CLASS = re.compile(
    r"(?:^|[-_ ]|(?-i:(?<=[a-z])(?=[A-Z])))"
    r"(?:date|time|pub(?:lish(?:ed)?)?|posted|regist(?:er)?|reg-?date|datetime|input|timestamp|"
    r"dateline|(?:post)?meta(?:data)?|datum)"
    r"(?:$|[-_ ]|(?-i:(?=[A-Z])))|일시|날짜",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:(?<![가-힣])(?<!오늘 )날짜(?=\s?[:：]\s?[\d./-]{6,10}\.?\s(?:\(.\)\s)?\d{1,2}:\d)|"
    r"(?:기사\s?)?입력|등록(?:일시?)?|송고(?:시간)?|작성(?:일시?)?|게시(?:일시?)?|발행(?:일시?)?|승인|최초\s?등록|"
    r"\b(?:published|posted|first published|erstellt|erschienen|veröffentlicht|datum|publié|"
    r"pubblicato|publicado)(?:\s(?:on|at|am|le|il|el|em))?|^stand(?=:))"
    r"\s{0,3}[:：]?\s{0,3}",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"(?:\w{2,12}[,.]{1,2}\s)?\d{1,4}[./년-]\s?[\w]")
"""How a line begins that begins with a date, and perhaps the day of the week before it."""
_BARE = re.compile(
    r"(?:\w{2,12}[,.]{1,2}\s)?"
    r"(?:\d{4}([./-])\s?\d{1,2}\1\s?\d{1,2}\.?|\d{1,2}([./-])\s?\d{1,2}\2\s?\d{2,4}|"
    r"\d{1,2}\.?\s\w{3,10}\.?,?\s\d{4}|\w{3,10}\.?\s\d{1,2},\s\d{4}|\d{4}[년年]\s?\d{1,2}[월月]\s?\d{1,2}[일日])"
    r"(?:[\s,|-]{1,3}\d{1,2}:\d\d(?::\d\d)?(?:\s?[Uu]hr)?)?(?:\s[|·]\s\w{2,20})?"
)
"""A date, and perhaps its clock and the section of a paper, with nothing else."""
_LONGEST = 200
"""Characters of an element that says when something was published."""
_LINES = ("p", "span", "div", "em", "dd", "td", "li", "time", "strong", "small", "ul", "abbr")
_VIEWS = re.compile(r"조회|추천|\b(?:hits?|views?)\b", re.IGNORECASE)
"""What stands beside the time in the line below the headline of a board's post."""
_HELD = ("data-date-time", "data-datetime", "data-timestamp", "data-time", "title")
"""Attributes that hold a whole time where the text says `2024.03.01.` or `5일 전`."""
_MOST_ELEMENTS, _MOST_ARTICLES = 400, 50
_DIGIT = re.compile(r"\d")
_WRITTEN = "//text()[not(parent::script or parent::style)] | //meta/@content | //@datetime"
_IN_SCRIPT = re.compile(
    r"""(?:publi|creat|post)\w{0,20}["']?\s?[:=]\s?["'](\d{4}-\d\d-\d\d)""", re.IGNORECASE
)
"""A day that a script names as that of the publication; other days in it are of other things."""


def published(
    tree: Any, blocks: list[Any], url: str, zone: str, read_at: datetime | None = None
) -> Publication:
    """What a parsed page (lxml) says; times without a zone are in `zone`.

    blocks   its JSON-LD (`jsonld.blocks`)
    read_at  when it was fetched, for times such as `5분 전`; None: those mean nothing

    The first of: its meta elements (or the day of its article in JSON-LD, where only that is one
    that readers see, or the earlier one), JSON-LD that describes the page, its own `<time>`, a
    labelled date in its text (`입력 2024.03.01. 10:30`), metadata that is only called a date, such
    a time relative to `read_at`, and a guess of a day: the only one that stands alone in the
    text, or what htmldate finds and the page says in full.
    """
    named: dict[str, str] = {}
    for meta in tree.xpath("//meta[@content]"):
        for mark in ("property", "name", "itemprop", "http-equiv"):
            name = (meta.get(mark) or "").strip().lower()
            if name and meta.get("content").strip():
                named.setdefault(name, meta.get("content"))
    own = (named.get(name) for name in _META)
    vague = [named[name] for name in _VAGUE_META if named.get(name)]
    candidates: tuple[tuple[DateOrigin, Iterator[object]], ...] = (
        ("metadata", chain(own, _of_json(blocks, url), _of_elements(tree))),
        ("text", _labelled(tree)),
        ("metadata", iter(vague)),
    )
    for origin, values in candidates:
        for value in values:
            when = parse_time(value, zone, day_first=True)
            if when is not None:
                articles = filter(_is_article, chain.from_iterable(map(described, blocks)))
                dates = {text for it in articles for text in texts_of(it.get("datePublished"))}
                others = dates if origin == "metadata" else set(vague)
                return Publication(_as_shown(tree, others, when, zone), origin)
    if read_at is not None:
        for value in chain(_of_elements(tree), _labelled(tree)):
            when = parse_time(value, zone, read_at)
            if when is not None:
                return Publication(when, "text")
    return _guessed(tree, url, zone)


def _guessed(tree: Any, url: str, zone: str) -> Publication:
    """The one day that stands alone on the page, else one found by htmldate that is written in
    full on the page or in its address; not in what stands beside the article."""
    alone = (
        text
        for element in tree.iter(*_LINES)
        if _BARE.fullmatch(text := _short_text(element)) and not _beside(element, _NOT_THE_PAGE)
    )
    read = (parse_time(text, zone, day_first=True) for text in alone)
    times = sorted({when.astimezone(ZoneInfo(zone)) for when in read if when is not None})
    if times and times[0].date() == times[-1].date():
        # Of that day alone, and with its clock, the first is the publication.
        first = next((when for when in times if when.time() != time()), times[0])
        return Publication(first.astimezone(UTC), "guess")
    page = deepcopy(tree)
    for element in page.xpath("//aside | //blockquote | //*[@class or @id]"):
        other = element.tag in ("aside", "blockquote") or _NOT_THE_PAGE.search(_marks(element))
        if other and element.tag not in _WHOLE and element.getparent() is not None:
            element.drop_tree()
    written = " ".join([url, *page.xpath(_WRITTEN)])
    written += " ".join(_IN_SCRIPT.findall(" ".join(page.xpath("//script/text()"))))
    try:
        day = find_date(page, extensive_search=True, original_date=True, url=url)
    except (ValueError, TypeError, AttributeError, RecursionError):
        day = None
    # Of a year alone, as a copyright has it, htmldate makes its first day.
    when = None if not day or day.endswith("-01-01") else parse_time(day, zone)
    if when is None or not _day_in_full(date.fromisoformat(day)).search(written):
        return Publication()
    return Publication(when, "guess")


def _day_in_full(day: date) -> re.Pattern[str]:
    """How a day is written with its year, its month by number or by name in any language."""
    year, month, number = rf"(?:{day:%Y}|(?<!\d){day:%y})", f"0?{day.month}", f"0?{day.day}"
    return re.compile(
        rf"(?<!\d)(?:{day:%Y}\W{{0,3}}{month}\W{{0,3}}{number}|"
        rf"{day:%Y}\s?[년年]\s?{month}\s?[월月]\s?{number}|"
        rf"{number}\W{{1,2}}{month}\W{{1,2}}{year}|{month}/{number}/{year}|"
        rf"{number}\W{{0,4}}(?:de\s)?[^\W\d]{{3,12}}\W{{1,3}}(?:de\s)?{year})(?!\d)|"
        rf"[^\W\d]{{3,12}}\W{{1,3}}{number}(?:st|nd|rd|th)?\W{{1,3}}{day:%Y}"
    )


def _of_json(blocks: list[Any], url: str) -> Iterator[object]:
    """Dates of the objects that describe the page: articles first, and of several its own."""
    dated = [
        value
        for block in blocks
        for value in described(block)
        if any(value.get(key) for key in _DATE_KEYS) and not types_of(value) & _NO_PAGES
    ]
    dated.sort(key=lambda value: (not _is_article(value), not _names(value, url)))
    for value in dated:
        for key in _DATE_KEYS:
            yield value.get(key) if isinstance(value.get(key), int) else None
            yield from texts_of(value.get(key))


def _as_shown(tree: Any, others: set[str], when: datetime, zone: str) -> datetime:
    """`when`, or the other time that the page names, where there is one and readers are shown its
    day: that day alone, or the earlier of both.

    Some sites write into the meta element when they changed a page, or published it again; and
    above many an article stands the day of today.
    """
    other = parse_time(next(iter(others)), zone, day_first=True) if len(others) == 1 else None
    here = ZoneInfo(zone)
    if other is None or other.astimezone(here).date() == when.astimezone(here).date():
        return when
    texts = tree.xpath("//body//text()[not(parent::script or parent::style)]")
    shown = " ".join(
        text for text in texts if any(map(str.isdigit, text)) and not _beside(text.getparent())
    )
    ours, theirs = (
        _day_in_full(moment.astimezone(here).date()).search(shown) for moment in (when, other)
    )
    return other if theirs and (not ours or other < when) else when


def _is_article(value: dict[str, Any]) -> bool:
    return any(
        name in _ARTICLES or name.endswith(("Article", "Posting", "Report"))
        for name in types_of(value)
    )


def _names(value: dict[str, Any], url: str) -> bool:
    """Whether an object says that it is about this address."""
    own = url.split("#")[0].rstrip("/")
    entity = value.get("mainEntityOfPage")
    inner = entity.get("@id") if isinstance(entity, dict) else None
    names = (value.get("url"), value.get("@id"), entity, inner)
    return any(isinstance(it, str) and it.split("#")[0].rstrip("/") == own for it in names)


def _of_elements(tree: Any) -> Iterator[object]:
    """`itemprop="datePublished"`, then `<time>` of the article itself."""
    marked = "@itemprop='datePublished' or contains(@property, ':datePublished') or @pubdate"
    times = tree.xpath(f"//*[{marked}] | //time")[:_MOST_ELEMENTS]
    own = [
        element
        for element in times
        if not _beside(element, _NOT_THE_PAGE if element.get("itemprop") else _OTHERS)
    ]
    own.sort(key=lambda it: it.get("itemprop") != "datePublished" and it.get("pubdate") is None)
    for element in own[:5]:
        yield element.get("datetime") or element.get("content")
        text = " ".join(element.text_content().split())
        if len(text) <= _LONGEST:
            yield text


def _beside(element: Any, others: re.Pattern[str] = _OTHERS) -> bool:
    """Whether an element belongs to a comment, a list or a link to something else."""
    article = None
    for node in element.iterancestors():
        if node.tag in ("nav", "blockquote"):
            return True
        if node.tag == "a" and not (
            node.get("rel") == "bookmark" or _BARE.fullmatch(_short_text(node))
        ):
            return True
        if node.tag in ("aside", "footer", "li") and not _tells_of_the_page(node):
            return True
        # What holds the headline is the page itself, whatever its class is called.
        if others.search(_marks(node)) and node.find(".//h1") is None and node.tag != "body":
            return True
        if node.tag == "article" and article is None:
            article = node
    if others.search(_marks(element)):
        return True
    if article is None:
        return False
    articles = element.getroottree().findall(".//article")
    if len(articles) < 2:
        return False
    # Each item of a list, and each comment, may be an article of its own: the page's has the
    # headline, or else most of the text.
    headed = [item for item in articles if item.find(".//h1") is not None]
    headed = headed or [max(articles[:_MOST_ARTICLES], key=lambda it: it.xpath("string-length()"))]
    return not any(outer in headed for outer in (article, *article.iterancestors("article")))


def _tells_of_the_page(node: Any) -> bool:
    """Whether an item is a line that leads nowhere, or is called what a date is; an aside without
    a headline tells of the article that it is in."""
    if node.tag == "aside":
        headed = next(node.iter("h1", "h2", "h3", "h4"), None) is not None
        return not headed and next(node.iterancestors("article"), None) is not None
    line = bool(_short_text(node)) and node.find(".//a") is None
    return line or bool(_DATE_CLASS.search(_marks(node)))


def _marks(node: Any) -> str:
    return f"{node.get('class') or ''} {node.get('id') or ''}"


def _labelled(tree: Any) -> Iterator[str]:
    unlabelled = []
    looked = 0
    for element in tree.iter(*_LINES):
        named = _DATE_CLASS.search(_marks(element))
        text = _short_text(element)
        if named and not text:  # of a long one the beginning, as `Posted on 3 March 2020 in`
            parts = (" ".join(part.split()) for part in element.itertext())
            text = next(filter(None, parts), "")
            text = text if len(text) <= _LONGEST else ""
        data = [
            value for name in _HELD if named and _DIGIT.search(value := element.get(name) or "")
        ]
        if not data and not _DIGIT.search(text):
            continue
        looked += 1
        if looked > _MOST_ELEMENTS:
            break
        label = _LABEL.search(text)
        if label is None and named is None and not _VIEWS.search(text):
            continue
        if _beside(element, _OTHERS if label is None else _NOT_THE_PAGE):
            continue
        if label is not None:
            yield from (*data, text[label.end() :])
        else:
            unlabelled += [*data, text]
    yield from unlabelled[:5]
    yield from _beside_headline(tree)


def _beside_headline(tree: Any) -> Iterator[str]:
    """Lines that begin with a date, in what holds the headline."""
    for headline in tree.iterfind(".//h1"):
        block = headline.getparent()
        if block.getparent() is not None and len(block) == 1:
            block = block.getparent()
        for element in block.iter(*_LINES):
            text = _short_text(element)
            if _BEGINS.match(text) and not _beside(element):
                yield text


def _short_text(element: Any) -> str:
    """An element's text where it is short; "" where it holds more than a line, or a script."""
    parts: list[str] = []
    length = 0
    for part in element.itertext():
        length += len(part.strip())
        if length > _LONGEST:
            return ""
        parts.append(part)
    if element.find(".//script") is not None or element.find(".//style") is not None:
        return ""
    return " ".join(" ".join(parts).split())
