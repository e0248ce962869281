import json
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from embedding.crawl.extract import extract

URL = "https://news.example/1"
BODY = (
    "<article><h1>제목</h1><p>" + "국회는 본회의를 열어 예산안을 처리했다. " * 12 + "</p></article>"
)
MARCH = datetime(2024, 3, 1, tzinfo=UTC)
JSON = '<script type="application/ld+json">{}</script>'


class Publication(NamedTuple):
    at: datetime | None = None
    origin: str = "none"


def read(
    head: str = "", body: str = BODY, zone: str = "UTC", now: datetime | None = None
) -> Publication:
    page = f"<html><head>{head}</head><body>{body}</body></html>"
    found = extract(page, URL, zone, read_at=now)
    return Publication(found.published_at, found.dated_by)


@pytest.mark.parametrize(
    "name",
    [
        *("article:published_time", "og:regDate", "DC.date.issued", "pubdate", "date"),
        *("published_at", "publication_date", "bt:pubDate", "rnews:datePublished", "ptime"),
        *("og:release_date", "DCSext.articleFirstPublished", "article:created_time"),
    ],
)
def test_meta_elements(name: str) -> None:
    assert read(f'<meta property="{name}" content="20240301000000">') == Publication(
        MARCH, "metadata"
    )


def test_metadata_goes_before_the_text_and_the_text_before_a_guess() -> None:
    line = '<p class="info">입력 2024.03.02. 10:30 수정 2024.03.05. 11:00</p>'
    dated = read(body=BODY.replace("</h1>", f"</h1>{line}"))
    assert dated == Publication(datetime(2024, 3, 2, 10, 30, tzinfo=UTC), "text")
    meta = '<meta property="article:published_time" content="2024-03-01">'
    assert read(meta, BODY.replace("</h1>", f"</h1>{line}")) == Publication(MARCH, "metadata")
    guessed = read(body=BODY.replace("</p>", " (2024-03-01)</p>"))
    assert (guessed.origin, str(guessed.at)[:10]) == ("guess", "2024-03-01")


def test_the_meta_element_of_the_publication_goes_before_json_ld() -> None:
    script = JSON.format('{"@type": "NewsArticle", "datePublished": "2024-03-07"}')
    meta = '<meta property="article:published_time" content="2024-03-01">'
    assert read(script + meta) == read(meta + script) == Publication(MARCH, "metadata")


def test_todays_date_above_an_article_is_not_its_own() -> None:
    today = '<div class="dlf-date">Mittwoch, 26.02.2020</div>'
    meta = '<meta name="date" content="2017-05-01T17:05:00Z">'
    shown = BODY.replace("</p>", " 01.05.2017</p>")
    expected = datetime(2017, 5, 1, 17, 5, tzinfo=UTC)
    assert read(meta, today + shown).at == expected
    assert read(meta, today + BODY).at == datetime(2020, 2, 26, tzinfo=UTC)
    nav = today.replace("dlf-date", "navtop").replace("Mittwoch", "<time>Mittwoch") + "</time>"
    own = BODY.replace("</h1>", '</h1><span class="date">01.03.2024</span>')
    assert read(body=nav + own) == Publication(MARCH, "text")


def test_a_day_that_only_a_list_of_others_shows_is_not_shown() -> None:
    meta = '<meta itemprop="datePublished" content="2019-10-18">'
    script = JSON.format('{"@type": "NewsArticle", "datePublished": "2019-10-19T03:00:00Z"}')
    own = BODY.replace("</h1>", "</h1><p>19.10.2019, 05:00 Uhr</p>")
    others = '<ul><li class="teaser">18.10.2019, 20:00 <a href="/b">andere</a></li></ul>'
    assert read(meta + script, own + others).at == datetime(2019, 10, 19, 3, tzinfo=UTC)


def test_the_day_that_readers_see_tells_a_publication_from_a_change() -> None:
    meta = '<meta property="article:published_time" content="2024-04-07T09:00:00Z">'
    article = '{"@type": "NewsArticle", "datePublished": "2024-03-01"}'
    april = Publication(datetime(2024, 4, 7, 9, tzinfo=UTC), "metadata")
    march = Publication(MARCH, "metadata")
    seen = {"2024-03-01": march, "2024.4.7": april, "April 7, 2024 / March 1, 2024": march}
    for shown, expected in {**seen, "": april}.items():
        assert read(meta + JSON.format(article), f"<p>{shown}</p>" + BODY) == expected
    both = JSON.format(f"[{article}, {article.replace('03-01', '03-02')}]")
    video = JSON.format('{"@type": "VideoObject", "uploadDate": "2024-03-01"}')
    for script in (both, video):
        assert read(meta + script, "<p>2024-03-01</p>" + BODY) == april


@pytest.mark.parametrize(
    "dated",
    [
        '"datePublished": ["2024-03-01"]',
        '"datePublished": {"@type": "Date", "@value": "2024-03-01"}',
        '"datePublished": "2024-03-01T09:00:00&#x2B;09:00"',
        r'"headline": "It\'s", "datePublished": "2024-03-01",',
        '/* date */ "datePublished": "2024-03-01" "author": "x"',
    ],
)
def test_json_ld_as_sites_write_it(dated: str) -> None:
    script = JSON.format(f'{{"@type": "WebSite"}} {{"@type": "NewsArticle", {dated}}}')
    assert read(script) == Publication(MARCH, "metadata")


def test_what_readers_see_goes_before_metadata_that_is_only_called_a_date() -> None:
    meta = '<meta name="date" content="2024-05-09">'
    line = '<span class="date">01.03.2024</span>'
    assert read(meta, BODY.replace("</h1>", f"</h1>{line}")) == Publication(MARCH, "text")


@pytest.mark.parametrize("name", ["publishDate", "FullDate_root", "date-line", "article_date"])
def test_classes_of_dates_in_any_spelling(name: str) -> None:
    line = f'<div><em class="{name}">Freitag, 01.03.2024</em></div>'
    assert read(body=line + BODY) == Publication(MARCH, "text")


@pytest.mark.parametrize(
    "text",
    [
        *("01.03.2024", "1 mars 2024, 09:30", "Mar 1, 2024", "2024년 3월 1일", "2024年3月1日"),
        *("2024-03-01 | Botschaft", '<a href="/2024/03/">2024年03月01日</a>'),
    ],
)
def test_a_date_that_stands_alone_is_a_guess_where_it_is_the_only_one(text: str) -> None:
    alone, earlier = f"<div>{text}</div>", BODY.replace("</p>", " 2019-05-07 이후로.</p>")
    found = read(body=alone + earlier + alone)
    clock = (9, 30) if "09:30" in text else (0, 0)
    assert found == Publication(MARCH.replace(hour=clock[0], minute=clock[1]), "guess")
    assert read(body=alone + BODY, zone="Asia/Seoul") == read(body=alone + BODY, zone="Asia/Tokyo")


@pytest.mark.parametrize(
    "beside",
    [
        "<p>Comunicato n. 03/2020</p><p>© 2020 Ente</p>",
        "<p>Nr. 6, © 2010 by Verlag</p>",
        '<blockquote><p>Instagram, <time datetime="2018-03-12">12. 3.</time></p></blockquote>',
        '<img src="/wp-content/uploads/2016/08/16/bild.jpg">',
        '<script>ads = {"startDate": "2020-06-30T22:00", "values": ["2013-09-12"]}</script>',
        '<div class="event-list"><p>13.11.2021</p></div>',
        '<div class="veranstaltungen"><p>13.11.2021</p></div>',
    ],
)
def test_a_day_that_the_page_itself_does_not_name_is_no_guess(beside: str) -> None:
    assert read(body=BODY + beside) == Publication()


@pytest.mark.parametrize("key", ["publishedDate", "created_at", "post_date"])
def test_a_script_may_name_the_day_of_the_publication(key: str) -> None:
    state = f'<script>state = {{"{key}":"2024-03-01T09:30:00+00:00"}}</script>'
    assert read(body=BODY + state) == Publication(MARCH, "guess")


@pytest.mark.parametrize("day", ["2024-03-01", "1. März 2024", "March 1st, 2024", "1 mars 2024"])
def test_a_day_in_full_may_be_guessed(day: str) -> None:
    found = read(body=BODY.replace("</p>", f" Stand vom {day} hier.</p>"))
    assert found == Publication(MARCH, "guess")


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        ("글쓴이 : 손님 &nbsp; 날짜 : 24-03-01 09:00 &nbsp; 조회 : 12", "text"),
        ("오늘 날짜 : 2024-03-01 09:00", "none"),
        ("행사 날짜 : 2024년 3월 1일", "none"),
    ],
)
def test_the_date_of_a_post_on_an_old_board(line: str, origin: str) -> None:
    table = f"<table><tr><td>{line}</td></tr><tr><td>{BODY}</td></tr></table>"
    dated = read(body=table, zone="Asia/Seoul")
    assert (dated == Publication(MARCH, "text")) == (origin == "text")


def test_a_page_without_a_date_has_none() -> None:
    assert read() == Publication()


@pytest.mark.parametrize(
    "beside",
    [
        '<section class="comments"><time datetime="2009-04-11 18:06">2009</time></section>',
        '<ul class="reply_list"><li><span class="date">2009.04.11 18:06</span></li></ul>',
        '<aside><a href="/x">옛 글 <time datetime="2019-01-01T00:00:00Z">2019</time></a></aside>',
        '<div class="related-news"><article><time datetime="2019-01-01">1월</time></article></div>',
    ],
)
def test_times_of_comments_and_of_other_articles_do_not_count(beside: str) -> None:
    assert read(body=BODY + beside) == read(body=beside + BODY) == Publication()
    own = BODY.replace("</h1>", '</h1><time datetime="2024-03-01T00:00:00Z">3월 1일</time>')
    assert read(body=own + beside) == read(body=beside + own) == Publication(MARCH, "metadata")


def test_what_holds_the_headline_is_the_page_whatever_its_class() -> None:
    own = '<h1>의견</h1><span class="date">01.03.2024</span>'
    assert read(body=f'<div class="commentHeader next">{own}</div>{BODY[18:]}').at == MARCH


def test_items_of_a_list_may_be_articles_of_their_own() -> None:
    item = '<article><h3>다른 글</h3><time datetime="2019-01-01">1월</time></article>'
    own = BODY.replace("</h1>", '</h1><time datetime="2024-03-01T00:00:00Z">3월 1일</time>')
    assert read(body=item + own + item) == Publication(MARCH, "metadata")


def test_json_ld_of_the_page_goes_before_that_of_what_it_lists() -> None:
    listed = '{"@type":"ItemList","itemListElement":[{"datePublished":"2019-01-01"}]}'
    own = '{"@type":"NewsArticle","datePublished":"2024-03-01T00:00:00Z"}'
    for order in ((listed, own), (own, listed)):
        assert read("".join(JSON.format(one) for one in order)) == Publication(MARCH, "metadata")
    other = '{"@type":"NewsArticle","url":"https://news.example/2","datePublished":"2019-01-01"}'
    named = f'{{"@type":"NewsArticle","url":"{URL}","datePublished":"2024-03-01T00:00:00Z"}}'
    assert read(JSON.format(f"[{other},{named}]")) == Publication(MARCH, "metadata")


def test_an_impossible_date_leaves_the_next_one() -> None:
    head = JSON.format('{"datePublished":"2024-02-31"}') + '<meta name="date" content="2024-03-01">'
    assert read(head) == Publication(MARCH, "metadata")


@pytest.mark.parametrize(
    "line",
    [
        '<ul class="meta"><li>정치</li><li class="date">01.03.2024</li></ul>',
        '<ul><li class="m-data"><time datetime="2024-03-01">1. März</time></li></ul>',
        '<aside><dl><dd><time datetime="2024-03-01">1일</time></dd></dl></aside>',
        '<div class="footer"><time itemprop="datePublished" datetime="2024-03-01">1일</time></div>',
        '<a rel="bookmark" href="/a"><time datetime="2024-03-01">3월 1일</time></a>',
        '<p class="footer-line">Erschienen am: 01.03.2024</p>',
        "<p>1. März 2024, 홍길동</p>",
        '<p class="date">1 mars 2024</p>',
        '<p class="datum">1 marzo 2024</p>',
        '<p class="x">Stand: 01.03.2024</p>',
        f'<p class="postmetadata">Posted on March 1, 2024 in <a href="/c">{"x" * 300}</a></p>',
    ],
)
def test_a_line_of_the_page_itself_says_when_it_was_published(line: str) -> None:
    assert read(body=BODY.replace("</h1>", f"</h1>{line}")).at == MARCH


@pytest.mark.parametrize(
    "other",
    [
        '<ul><li><a href="/b">다른 글</a> <time datetime="2019-01-05">5일</time></li></ul>',
        "<aside><h3>다른 글</h3><time datetime='2019-01-05'>5일</time></aside>",
        "<blockquote><time datetime='2019-01-05'>5일</time></blockquote>",
    ],
)
def test_what_leads_elsewhere_or_is_quoted_does_not(other: str) -> None:
    assert read(body=BODY.replace("</article>", f"{other}</article>")).origin in ("guess", "none")


def test_metadata_that_is_only_called_a_date_comes_behind_the_pages_own_time() -> None:
    meta = '<meta name="dcterms.date" content="2024-02-20">'
    own = BODY.replace("</h1>", '</h1><time datetime="2024-03-01T00:00:00Z">3월 1일</time>')
    assert read(meta, own) == Publication(MARCH, "metadata")
    assert read(meta).at == datetime(2024, 2, 20, tzinfo=UTC)


def test_a_year_alone_is_no_date() -> None:
    assert read(body=BODY + "<footer>© 2009 신문사</footer>") == Publication()


def test_a_time_relative_to_the_fetch_counts_where_no_date_is_written() -> None:
    line = '<span class="date">3일 전</span>'
    now = datetime(2024, 3, 4, 10, 30, tzinfo=UTC)
    body = BODY.replace("</h1>", f"</h1>{line}")
    assert read(body=body) == Publication()
    assert read(body=body, now=now) == Publication(datetime(2024, 3, 1, 10, 30, tzinfo=UTC), "text")
    dated = body.replace("</h1>", '</h1><span class="info">입력 2024.03.01.</span>')
    assert read(body=dated, now=now) == Publication(MARCH, "text")


HEADLINE = "<h3>도서관 새로 열어</h3>"
TEXT = "<p>" + "시립 도서관이 다시 문을 열었다. " * 20 + "</p>"


@pytest.mark.parametrize(
    "line",
    [
        '<span class="stamp_time" data-date-time="2024-03-01 15:05:10">2024.03.01.</span>',
        '<span class="time" title="2024-03-01 15:05:10">5일 전</span>',
        '<abbr class="published" title="2024-03-01T15:05:10+09:00">5일 전</abbr>',
        '<span class="regdate">2024.03.01 (15:05:10)</span>',
        "<div>이름: 영희 &nbsp; 날짜 : 2024-03-01 (금) 15:05:10 &nbsp; 조회: 33</div>",
        "<div>영희 | 2024.03.01 15:05:10 | 조회 10</div>",
        "<td>2024-03-01 15:05:10, Hit : 1234</td>",
        "<div><span>2024-03-01 15:05:10</span></div>",
    ],
)
@pytest.mark.parametrize("others", [False, True])
def test_boards_and_portals_of_korea(line: str, others: bool) -> None:
    comments = "".join(
        f'<article id="c{day}"><time datetime="2024-03-0{day}T10:00+09:00">{day}</time></article>'
        for day in (4, 5)
    )
    post = f'<article id="view">{HEADLINE}{line}{TEXT}</article>'
    now = datetime(2024, 3, 6, 5, tzinfo=UTC)
    found = read(body=post + comments * others, zone="Asia/Seoul", now=now)
    assert found.at == datetime(2024, 3, 1, 6, 5, 10, tzinfo=UTC)


def test_a_time_of_a_comment_is_none_of_the_page() -> None:
    comment = '<div class="cmt_list"><span class="date">2024-03-05 10:00</span></div>'
    assert read(body=HEADLINE + TEXT + comment).at is None


@pytest.mark.parametrize("value", [1709251200, 1709251200000])
def test_a_number_in_json_ld_is_a_moment(value: int) -> None:
    dated = json.dumps({"@type": "NewsArticle", "datePublished": value})
    assert read(JSON.format(dated)) == Publication(MARCH, "metadata")


def test_an_empty_meta_element_hides_no_other() -> None:
    meta = '<meta property="article:published_time" content="{}">'
    assert read(meta.format(" ") + meta.format("2024-03-01")) == Publication(MARCH, "metadata")


@pytest.mark.parametrize(
    "line",
    [
        '<p class="update-time"><span>송고</span>2024-03-01 09:30</p>',
        '<p class="update-time">송고시간2024-03-01 09:30</p>',
        '<span property="schema:datePublished" content="2024-03-01T09:30:00Z">3월</span>',
    ],
)
def test_a_news_agency_and_rdfa(line: str) -> None:
    assert read(body=line + BODY).at == datetime(2024, 3, 1, 9, 30, tzinfo=UTC)


def test_a_page_describes_itself_by_graph_and_entity_and_not_by_lists() -> None:
    own = {"name": "page", "mainEntity": {"@type": "Article", "datePublished": "2024-03-01"}}
    other = {"@type": "Article", "datePublished": "2024-03-07"}
    graph = {"@graph": [own, {"@type": "ItemList", "itemListElement": [other]}]}
    assert read(JSON.format(json.dumps(graph))) == Publication(MARCH, "metadata")
    del own["mainEntity"]
    assert read(JSON.format(json.dumps(graph))).origin == "guess"
