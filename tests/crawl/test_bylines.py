"""Names of authors stand in no text: whatever a page calls its author, and however it writes it."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crawling import crawl
from embedding.crawl.bylines import without_bylines
from embedding.crawl.crawler import Crawler
from embedding.crawl.extract import extract
from embedding.crawl.frontier import Frontier
from embedding.crawl.services import make_pseudonyms
from embedding.sources.base import FetchedPage
from embedding.sources.config import SourceConfig, load_sources
from embedding.sources.kinds import read_listing
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from yeoron_simweb.sources import sources_toml
from yeoron_simweb.testing import running

URL = "https://example.org/news/1"
TEXT = "정부는 오늘 새 정책을 내놓았다."
BODY = "".join(f"<p>{n}번째 문단에서 시민들은 의견을 길게 말하였다.</p>" for n in range(6))


def page(head: str = "", byline: str = "", body: str = BODY) -> str:
    return (
        f"<html><head><title>제목</title>{head}</head><body>"
        f"<article><h1>제목</h1>{byline}{body}</article></body></html>"
    )


@pytest.mark.parametrize(
    "line",
    [
        "홍길동 기자",
        "홍길동 기자 hong@example.kr",
        "hong@example.kr 홍길동 기자",
        "홍길동 기자 · 2021-08-01 10:00 UTC",
        "홍길동 기자 입력 2021.08.01 오전 10:00",
        "정치부 홍길동 기자",
        "홍길동 워싱턴 특파원",
        "워싱턴=홍길동 특파원",
        "글 홍길동 기자",
        "[홍길동 기자]",
        "홍길동 논설위원",
        "사진=홍길동 기자",
    ],
)
def test_a_line_that_is_a_byline_goes_and_names_the_author(line: str) -> None:
    if line.startswith("hong"):
        assert without_bylines(f"{line}\n{TEXT}")[0].strip() == TEXT
        return
    assert without_bylines(f"{line}\n{TEXT}") == (TEXT, ("홍길동",))


@pytest.mark.parametrize("label", ["글쓴이 : ", "작성자: "])
def test_the_writer_of_a_post_on_an_old_board_goes(label: str) -> None:
    post = f"{label}홍길동 날짜 : 24-03-01 09:00 조회 : 3\n{TEXT} 홍길동이 썼다."
    rest = f"날짜 : 24-03-01 09:00 조회 : 3\n{TEXT} 썼다."
    text, names = without_bylines(post)
    assert (" ".join(text.split()), names) == (" ".join(rest.split()), ("홍길동",))


@pytest.mark.parametrize(
    "text",
    [
        f"(서울=연합통신) 홍길동 기자 = {TEXT}",
        f"[서울=여론일보]홍길동 기자 = {TEXT}",
        f"[여론일보 홍길동 기자] {TEXT}",
        f"{TEXT} 홍길동 기자",
        f"{TEXT} 홍길동 기자 hong@example.kr",
        f"{TEXT} 홍길동 기자(hong@example.kr)",
        f"홍길동 기자 = {TEXT}",
    ],
)
def test_a_byline_beside_the_text_goes_alone(text: str) -> None:
    found, names = without_bylines(text)
    assert (found.strip(), names) == (TEXT, ("홍길동",))


@pytest.mark.parametrize(
    "text", ["회의 모습 /사진=홍길동 기자", "회의 모습 ⓒ홍길동", "회의 모습 (사진 제공=홍길동)"]
)
def test_credits_of_photos_go(text: str) -> None:
    assert without_bylines(text)[0].strip() == "회의 모습"


@pytest.mark.parametrize(
    "line", ["2021-08-01 10:00 UTC", "입력 2021.08.01 10:00 | 수정 2021.08.01 11:00", "a@b.example"]
)
def test_lines_of_dates_and_addresses_go(line: str) -> None:
    assert without_bylines(f"{line}\n{TEXT}") == (TEXT, ())


def test_english_bylines_go() -> None:
    for line in ("By John Smith", "By John Smith, Staff Writer", "John Smith, Staff Writer"):
        assert without_bylines(f"{line}\nThe council met.") == ("The council met.", ("John Smith",))
    both = without_bylines("By John Smith and Jane Doe\nThe council met.")
    assert both == ("The council met.", ("John Smith", "Jane Doe"))


@pytest.mark.parametrize(
    "text",
    [
        "그 기자는 다시 물었다.",
        "한국기자협회는 2021년 8월 1일 성명을 냈다.",
        "홍길동 장관은 기자 회견에서 말했다.",
        "By the time we got there it was over.",
        "사진을 찍는 사람이 많다.",
        "2021년 8월 1일 서울에서 열렸다.",
    ],
)
def test_sentences_stay_as_they_are(text: str) -> None:
    assert without_bylines(text) == (text, ())


def test_a_known_name_goes_wherever_it_stands() -> None:
    text = "홍길동 기자가 물었다. 홍길동의 글을 홍길동은 썼다. 홍길동전은 소설이다."
    assert without_bylines(text, ["홍길동"])[0].split() == (
        ["물었다.", "글을", "썼다.", "홍길동전은", "소설이다."]
    )
    assert without_bylines("느린여우10이 쓰고 느린여우10은 갔다", ["느린여우10"])[0].split() == [
        "쓰고",
        "갔다",
    ]
    text = "John Smithson met John Smith."
    assert without_bylines(text, ["John Smith"])[0] == "John Smithson met ."


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("홍길동 기자", "홍길동"),
        ("hong@example.kr (홍길동)", "홍길동"),
        ("정치부 홍길동 기자", "홍길동"),
        ("By John Smith", "John Smith"),
        ("느린여우10", "느린여우10"),
        ("온라인뉴스팀", ""),
        ("여론일보", ""),
        ("정치부", ""),
        ("관리자", ""),
        ("admin", ""),
        ("2021-08-01", ""),
    ],
)
def test_what_is_a_name_of_a_person(given: str, name: str) -> None:
    assert extract(page(), URL, "UTC", [given]).authors == ((name,) if name else ())


def test_several_names_in_one() -> None:
    named = ["홍길동·김철수 기자", "John Smith and Jane Doe"]
    assert extract(page(), URL, "UTC", named).authors == (
        "홍길동",
        "김철수",
        "John Smith",
        "Jane Doe",
    )


LD = '<script type="application/ld+json">{}</script>'


@pytest.mark.parametrize(
    "html",
    [
        page(LD.format('{"author": {"@type": "Person", "name": "홍길동"}}')),
        page(LD.format('{"@graph": [{"author": [{"name": "홍길동 기자"}]}]}')),
        page(LD.format('{"author": "홍길동"}')),
        page(LD.format('{"author": {"@type": "Person", "name": {"@value": "홍길동"}}}')),
        page(LD.format('{"author": {"@list": [{"@value": "홍길동"}]}}')),
        page(LD.format('{"headline": "그는 "네"라 했다" /* 글 */ "author": ["홍길동"],')),
        page(LD.format('{"@type": "WebSite"}\n{"author": {"name": "&#xD64D;&#xAE38;&#xB3D9;"}}')),
        page(LD.format('[{"author": {"@id": "#h"}}, {"@id": "#h", "name": "홍길동"}]')),
        page('<meta name="author" content="홍길동">'),
        page('<meta property="article:author" content="홍길동">'),
        page(byline='<span itemprop="author"><b itemprop="name">홍길동</b></span>'),
        page(byline='<a rel="author" href="/r/1">홍길동</a>'),
        page(byline='<div class="byline"><span class="author">홍길동 기자</span> 2021-08-01</div>'),
        page(byline='<p class="article-writer">홍길동 기자</p>'),
        page(body=BODY + "<p>홍길동 기자 hong@example.kr</p>"),
    ],
)
def test_the_author_is_found_and_its_name_is_not_in_the_text(html: str) -> None:
    html = html.replace("3번째 문단", "홍길동이 쓴 3번째 문단")
    found = extract(html, URL, "UTC")
    assert found.authors == ("홍길동",)
    assert "홍길동" not in found.text
    assert "쓴 3번째 문단에서" in found.text
    assert "5번째 문단" in found.text


@pytest.mark.parametrize(
    "html",
    [
        page(LD.format('{"author": {"@type": "Organization", "name": "정책연구"}}')),
        page('<meta name="author" content="여론"><meta property="og:site_name" content="여론">'),
        page('<meta property="article:author" content="https://social.example/page">'),
        page(byline=f'<div class="author">{BODY}</div>', body=""),
    ],
)
def test_what_names_no_person_is_no_author(html: str) -> None:
    found = extract(html, URL, "UTC")
    assert found.authors == ()
    assert "3번째 문단" in found.text


def test_names_in_the_title_go_too() -> None:
    html = page('<meta name="author" content="홍길동">').replace(
        "<title>제목", "<title>홍길동 기자의 눈"
    )
    assert extract(html, URL, "UTC").title == "눈"


def test_a_feed_names_the_author_of_a_page_that_does_not() -> None:
    found = extract(page(body=BODY + "<p>홍길동의 글이다.</p>"), URL, "UTC", ("홍길동 기자",))
    assert found.authors == ("홍길동",)
    assert "홍길동" not in found.text


RSS = (
    '<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><item>'
    "<link>http://e.org/1</link><dc:creator>홍길동</dc:creator></item></channel></rss>"
)
ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="http://e.org/1"/>'
    "<author><name>홍길동</name></author></entry></feed>"
)
JSON_FEED = (
    '{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "http://e.org/1", AUTHOR}]}'
)


@pytest.mark.parametrize(
    "text",
    [
        RSS,
        ATOM,
        JSON_FEED.replace("AUTHOR", '"authors": [{"name": "홍길동"}]'),
        JSON_FEED.replace("AUTHOR", '"author": {"name": "홍길동"}'),
    ],
)
def test_authors_of_a_feed(text: str) -> None:
    source = SourceConfig(name="s", kind="feed", url="http://e.org/feed")
    (one,) = read_listing(source, FetchedPage(source.url, text, text.encode(), {})).references
    assert one.authors == ("홍길동",)


@pytest.mark.parametrize(
    "piece", ["가", "가,", "가나 ", "a.b@", "[", "홍길동 기자 ", "(가=가", "2021-1-"]
)
def test_hostile_text_takes_little_time(piece: str) -> None:
    began = time.process_time()
    without_bylines(piece * 200_000, ["홍길동", "가나"])
    assert time.process_time() - began < 5


def documents() -> list[dict[str, object]]:
    """Short articles, of which an extractor takes the whole page, by authors with made-up names."""
    topics = ("마스크", "지하철", "백신", "주차장", "도서관")
    return [
        {
            "date": f"2020-02-{1 + n % 27:02d}T{n % 24:02d}:00:00+00:00",
            "title": f"{topics[n % 5]} 소식 {n}",
            "text": f"{topics[n % 5]} {n}번 이야기가 마을에 퍼졌다. 그래서 모두 모여 말했다.",
            "part": ("politics", "society", "life", "euckr", "comments")[n % 5],
        }
        for n in range(100)
    ]


async def test_no_name_of_an_author_of_the_simulated_web_becomes_a_word(
    quick: Any, tmp_path: Path
) -> None:
    """Real pages, extraction and text pipeline, which looks for new words as often as it can."""
    file = tmp_path / "sources.toml"
    frontier = Frontier(f"sqlite:///{tmp_path}/frontier.db")
    with running(None, documents()) as base:
        file.write_text(sources_toml(base, every=0.5, rendered=False), encoding="utf-8")
        host = base.removeprefix("http://")
        config = quick(
            allow_private_hosts=(host,), near_window=0, min_chars=1, dedupe_min_chars=10_000
        )
        crawler = Crawler(load_sources(file), config, frontier)

        found = await crawl(crawler, lambda found: len(found) >= 100)
    frontier.close()
    assert len(found) == 100
    assert all(document.author for document in found)
    pipeline = TextPipeline(TextConfig(boilerplate=0.0).model_copy(update={"new_words_every": 100}))
    words: Counter[str] = Counter()
    for _ in range(3):
        for source in sorted({document.source for document in found}):
            own = [document for document in found if document.source == source]
            block = pipeline.block(own, [0.0] * len(own))
            words.update(block.words)
    assert "마스크" in words
    name = re.compile("(?:푸른|느린|작은|고요한|둥근|빠른|수줍은|맑은|늦은|든든한|느리|빠르|푸르)?"
                      "(?:고래|두루미|너구리|다람쥐|거북|참새|수달|제비|여우|부엉이)")  # fmt: skip
    assert [word for word in words if name.search(word)] == []
    assert not any(name.search(f"{one.title} {one.text}") for one in found)


async def test_an_author_is_a_pseudonym_that_other_sources_do_not_share(quick: Any) -> None:
    pseudonyms = make_pseudonyms(quick())
    assert (
        pseudonyms.of("a", "홍길동") == pseudonyms.of("a", "홍길동") != pseudonyms.of("b", "홍길동")
    )


@pytest.mark.parametrize("label", ["기자명", "작성자", "글쓴이", "기고자", "- 기자명"])
@pytest.mark.parametrize("behind", ["", " 2024-03-01", " | 조회 12", " 작성일 2024-03-01"])
def test_a_writer_named_without_a_colon_goes_where_nothing_else_is_said(
    label: str, behind: str
) -> None:
    text, names = without_bylines(f"{label} 홍길동{behind}\n{TEXT}")
    assert names == ("홍길동",)
    assert "홍길동" not in text
    sentence = f"{label} 본인이 그렇게 말했다고 한다."
    assert without_bylines(sentence) == (sentence, ())


def test_a_name_behind_the_paper_of_a_copyright_goes() -> None:
    assert without_bylines("회의 모습 ⓒ 여론일보, 홍길동 기자")[0].strip() == "회의 모습"
