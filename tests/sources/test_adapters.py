"""What only one kind of adapter does."""

from __future__ import annotations

import gzip
import json
import lzma
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedding.kernel.clock import EventClock
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, Found, Pseudonyms
from embedding.sources.config import SourceConfig
from embedding.sources.dotted import dotted_text
from embedding.sources.kinds import make_adapter, read_listing
from generated import examples

BASE = "https://example.org"


def adapter(kind: str, **more: Any) -> Any:
    url = {} if kind == "replayed" else {"url": f"{BASE}/list"}
    config = SourceConfig(name="s", kind=kind, **{**url, **more})  # type: ignore[arg-type]
    return make_adapter(config, Pseudonyms(b"key"))


async def keys(one: Any, web: Any) -> list[str]:
    return [getattr(item, "url", None) or item.key async for item in one.poll(web)]


LISTED = "/bbs/list?id=%C0%DA&page=3"
FORM = '<form action="/l.do" method="post"><input name="{}" value="1"><input name="q" value="글">'


@pytest.mark.parametrize(
    ("link", "form", "expected"),
    [
        ('href="?pg=3"', "", "/bbs/list?pg=3"),
        ('href="javascript:goPage(3)"', "", LISTED),
        (
            "href=\"#\" onclick=\"fn_link_page('3', 'x'); return false\"",
            "",
            LISTED,
        ),
        ('href="javascript:fn(3)"', FORM.format("pageIndex"), "/l.do?pageIndex=3&q=%B1%DB"),
        ('href="javascript:fn(3)"', FORM.format("nttId"), LISTED),
        ('href="javascript:history.back()"', FORM.format("pageIndex"), None),
        ('href="javascript:void(0)"', "", None),
        ('href="#"', "", None),
        ('data-page="3"', "", LISTED),
        ('data-next="/bbs/more?page=3"', "", "/bbs/more?page=3"),
        ("onclick=\"location.href='list?page=3'\"", "", "/bbs/list?page=3"),
        ("onclick=\"window.open('https://other.example/?page=3')\"", "", None),
    ],
)
def test_the_next_page_of_a_board_may_be_a_scripts(
    link: str, form: str, expected: str | None
) -> None:
    url = f"{BASE}/bbs/list?id=%C0%DA&page=2"
    html = f'<html>{form}</form><a href="/read?no=1">글</a><a class="n" {link}>3</a></html>'
    source = SourceConfig(name="s", kind="page", url=url, links="read", next="a.n")
    found = read_listing(source, FetchedPage(url, html, html.encode(), {}, encoding="cp949"))
    assert found.next == (expected and BASE + expected)
    assert [one.url for one in found.references] == [f"{BASE}/read?no=1"]


async def test_a_sitemap_index_reads_only_changed_children(web: Any) -> None:
    index = (
        "<sitemapindex>"
        f"<sitemap><loc>{BASE}/1.xml</loc><lastmod>2020-01-01</lastmod></sitemap>"
        f"<sitemap><loc>{BASE}/2.xml.gz</loc><lastmod>2020-01-02</lastmod></sitemap>"
        "</sitemapindex>"
    )
    child = "<urlset><url><loc>{}</loc><lastmod>2020-01-01</lastmod></url></urlset>"
    web.pages = {
        f"{BASE}/list": index,
        f"{BASE}/1.xml": child.format(f"{BASE}/a"),
        f"{BASE}/2.xml.gz": gzip.compress(child.format(f"{BASE}/b").encode()),
    }
    one = adapter("sitemap")
    assert await keys(one, web) == [f"{BASE}/b", f"{BASE}/a"]
    web.asked.clear()
    web.pages[f"{BASE}/list"] = index.replace("2020-01-01", "2020-01-03")
    assert await keys(one, web) == [f"{BASE}/a"]
    assert web.asked == [f"{BASE}/list", f"{BASE}/1.xml"]


@pytest.mark.parametrize(("always", "never"), [(True, False), (False, True)])
async def test_a_lastmod_that_lies_is_trusted_less(web: Any, always: bool, never: bool) -> None:
    """One that moves at each poll brings fewer readings; one that stands hides nothing for long."""
    child = "<urlset><url><loc>{}</loc></url></urlset>"
    one, read = adapter("sitemap"), 0
    for poll in range(120):
        day = f"2020-01-01T{poll // 60:02}:{poll % 60:02}:00Z" if always else "2020-01-01"
        web.pages = {
            f"{BASE}/list": f"<sitemapindex><sitemap><loc>{BASE}/1.xml</loc>"
            f"<lastmod>{day}</lastmod></sitemap></sitemapindex>",
            f"{BASE}/1.xml": child.format(f"{BASE}/{poll // 20 if never else 0}"),
        }
        web.asked.clear()
        web.known.update(await keys(one, web))
        read += f"{BASE}/1.xml" in web.asked
    if always:
        assert read < 60
        assert one.trust.precision < 0.5
    else:
        assert read >= 3
        assert web.known >= {f"{BASE}/{n}" for n in range(2)}


SITEMAP = SourceConfig(name="s", kind="sitemap", url=BASE, timezone="UTC")


def test_entities_of_a_sitemap_are_not_expanded() -> None:
    bomb = (
        '<!DOCTYPE urlset [<!ENTITY a "x"><!ENTITY f SYSTEM "file:///etc/hostname">]>'
        f"<urlset><url><loc>{BASE}/&f;</loc></url></urlset>"
    )
    page = FetchedPage(BASE, bomb, bomb.encode(), {})
    assert [r.url for r in read_listing(SITEMAP, page).references] == [f"{BASE}/&f;"]


@given(st.binary(max_size=300))
def test_no_bytes_break_the_sitemap_reader(body: bytes) -> None:
    page = FetchedPage(BASE, body.decode("utf-8", "replace"), body, {})
    with suppress(FetchError):
        read_listing(SITEMAP, page)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("<tr onclick=\"location.href='read?no=1'\"><td>글</td></tr>", "/bbs/read?no=1"),
        ("<tr onclick=\"document.location = '/read?no=1';\"><td>글</td></tr>", "/read?no=1"),
        ("<a href=\"javascript:location.replace('read?no=1')\">글</a>", "/bbs/read?no=1"),
        (
            "<a href='#' onclick=\"window.open('./read?no=1', '', 'width=9')\">글</a>",
            "/bbs/read?no=1",
        ),
        ("<a href=\"javascript:goView('/read/1')\">글</a>", "/read/1"),
        ("<a href='#none' onclick=\"return fn.view('/read/1', 3)\">글</a>", "/read/1"),
        ('<li data-href="/read/1"><b>글</b></li>', "/read/1"),
        ('<li data-url="https://m.example.org/read/1">글</li>', "https://m.example.org/read/1"),
        ('<a href="javascript:void(0)" data-url="/read/1">글</a>', "/read/1"),
        ('<a href="/read/2" data-href="/read/1">글</a>', "/read/2"),
        # Not whole, of another site, no address, or what a button does.
        ("<tr onclick=\"location.href='/read?no=' + id\"><td>글</td></tr>", None),
        ("<a href=\"javascript:goView('1')\">글</a>", None),
        ("<a href='#' onclick=\"window.open('https://other.example/read/1')\">글</a>", None),
        ('<a href="#read" data-href="tab-read">글</a>', None),
        ("<button onclick=\"location.href='/read/1/delete'\">지우기</button>", None),
        ('<div data-url="/api/read">글</div>', None),
    ],
)
def test_an_article_may_be_linked_by_a_script(row: str, found: str | None) -> None:
    url = f"{BASE}/bbs/list"
    source = SourceConfig(name="s", kind="page", url=url, links="read")
    html = f"<html><table>{row}</table></html>" if "<tr" in row else f"<html>{row}</html>"
    references = read_listing(source, FetchedPage(url, html, html.encode(), {})).references
    expected = None if found is None else found if "://" in found else BASE + found
    assert [one.url for one in references] == ([] if expected is None else [expected])
    assert all(one.title == ("글" if "<a" in row else "") for one in references)


@pytest.mark.parametrize(
    ("script", "row"),
    [
        ("function view(no) {{ {go} }}", "<a href='javascript:view(1)'>글</a>"),
        (
            "var view = function (no, page) {{\n {go}\n}}",
            "<a href='#' onclick=\"view('1', 2)\">글</a>",
        ),
        (
            "var fn = {{ view: function(no) {{ {go} }} }}",
            "<a href='#' onclick='fn.view(1); return false'>글</a>",
        ),
    ],
)
@pytest.mark.parametrize(
    ("go", "found"),
    [
        ("location.href = '/read?no=' + no;", "/read?no=1"),
        ('window.location.href="/read/" + no + ".html";', "/read/1.html"),
        ("location.href = `/read/${no}`;", "/read/1"),
        ("window.open('/read?no=' + no, 'detail');", "/read?no=1"),
        ("location.href = root + '/read?no=' + no;", None),
        ("location.href = '/read?no=' + encode(no);", None),
    ],
)
def test_a_function_of_the_page_may_build_an_address(
    script: str, row: str, go: str, found: str | None
) -> None:
    html = f"<html><script>{script.format(go=go)}</script>{row}</html>"
    source = SourceConfig(name="s", kind="page", url=f"{BASE}/list", links="read")
    references = read_listing(source, FetchedPage(f"{BASE}/list", html, b"", {})).references
    assert [one.url for one in references] == ([BASE + found] if found else [])


PAGER = "".join(f'<a class="n" href="{{0}}{n}">{n}</a>' for n in range(1, 5))


@pytest.mark.parametrize(
    ("here", "links", "expected"),
    [
        ("/list", "/list?page=", "/list?page=2"),
        ("/list?page=2", "/list?page=", "/list?page=3"),
        ("/list?page=4", "/list?page=", None),
        ("/list/page/3", "/list/page/", "/list/page/4"),
        ("/list?start=2", "/list?start=", "/list?start=3"),
        ("/list?offset=3&q=1", "/list?q=1&offset=", "/list?q=1&offset=4"),
        ("/list?pageIndex=3", "javascript:go(4);//", "/list?pageIndex=4"),
    ],
)
def test_a_pager_leads_to_the_page_behind_this_one(
    here: str, links: str, expected: str | None
) -> None:
    source = SourceConfig(name="s", kind="page", url=BASE + here, next="a.n")
    html = f'<html><a class="n" href="/list">처음</a>{PAGER.format(links)}</html>'
    found = read_listing(source, FetchedPage(BASE + here, html, html.encode(), {}))
    assert found.next == (expected and BASE + expected)


def test_a_pager_may_count_from_zero() -> None:
    source = SourceConfig(name="s", kind="page", url=f"{BASE}/list", next="a.n")
    html = "<html>" + "".join(f'<a class="n" href="?page={n}">{n + 1}</a>' for n in range(3))
    found = read_listing(source, FetchedPage(f"{BASE}/list", html, html.encode(), {}))
    assert found.next == f"{BASE}/list?page=1"


async def test_pages_are_followed_until_all_links_are_known(web: Any) -> None:
    for n in range(1, 5):
        name = "list" if n == 1 else f"list{n}"
        web.pages[f"{BASE}/{name}"] = (
            f'<a href="/a/{n}#top">글</a><a href="javascript:void(0)">x</a>'
            f'<a rel="next" href="/list{n + 1}">다음</a>'
        )
    one = adapter("page", links="/a/", next="a[rel=next]", pages=3)
    assert await keys(one, web) == [f"{BASE}/a/{n}" for n in (1, 2, 3)]
    web.known = {f"{BASE}/a/2"}
    assert await keys(one, web) == [f"{BASE}/a/1", f"{BASE}/a/2"]


def comments(ids: list[int], following: object = None) -> str:
    listed = [{"id": i, "text": f"글 {i}", "time": 1580670306 + i} for i in ids]
    return json.dumps({"comments": listed, "next": following})


async def test_cursors_are_followed_to_known_comments(web: Any) -> None:
    web.pages = {
        f"{BASE}/list": comments([9, 8], "c1"),
        f"{BASE}/list?cursor=c1": comments([7, 6], "c2"),
        f"{BASE}/list?cursor=c2": comments([5]),
    }
    one = adapter("comments")
    assert await keys(one, web) == [f"{BASE}/list#comment-{i}" for i in (9, 8, 7, 6, 5)]
    web.known = {f"{BASE}/list#comment-{i}" for i in (7, 6)}
    assert len(await keys(one, web)) == 4


async def test_oldest_first_goes_on_at_the_last_cursor(web: Any) -> None:
    web.pages = {f"{BASE}/list": comments([1, 2], 2), f"{BASE}/list?cursor=2": comments([3])}
    one = adapter("comments", order="oldest")
    assert len(await keys(one, web)) == 3
    web.asked.clear()
    await keys(one, web)
    assert web.asked == [f"{BASE}/list?cursor=2"]


async def test_a_cursor_leaves_all_other_values_as_they_are(web: Any) -> None:
    url = f"{BASE}/list?id=%B0%A1&empty=&101"
    web.pages = {f"{url}&cursor=1": comments([2]), f"{url}&cursor=0": comments([1], "1")}
    one = adapter("comments", url=f"{url}&cursor=0", order="newest")
    await keys(one, web)
    assert web.asked == [f"{url}&cursor=0", f"{url}&cursor=1"]


async def test_a_cursor_that_repeats_ends_the_walk(web: Any) -> None:
    web.pages = {f"{BASE}/list": comments([1], "x"), f"{BASE}/list?cursor=x": comments([2], "x")}
    assert len(await keys(adapter("comments"), web)) == 2


async def test_nested_names_and_the_page_of_a_comment(web: Any) -> None:
    item = {"no": 5, "body": {"text": "글"}, "page": "/news/1#x", "user": {"nick": "가"}}
    web.pages = {f"{BASE}/list": json.dumps({"data": {"list": [item, {"no": 6}, 7]}})}
    one = adapter(
        "comments", items="data.list", id="no", text="body.text", link="page", author="user.nick"
    )
    assert await keys(one, web) == [f"{BASE}/news/1#comment-5"]


async def test_what_boards_write_of_late_is_a_time(web: Any) -> None:
    web.now = EventClock(((1580731200.0, 0.0), (1580731200.0, 1.0)))  # 21:00 in Seoul
    web.pages = {f"{BASE}/list": '{"comments": [{"id": 1, "text": "글", "time": "5분 전"}]}'}
    web.found = [Found("", "", "", "20:30", "글", "가")]
    seen = [item async for item in adapter("comments").poll(web)]
    seen += [item async for item in adapter("rendered", items="li", text="p").poll(web)]
    assert [item.published_at.timestamp() for item in seen] == [1580730900.0, 1580729400.0]


async def test_an_item_without_an_id_stays_itself_as_it_ages(web: Any) -> None:
    one = adapter("rendered", items="li", text="p")
    web.found = [Found("", "", "", "방금", "글", "가"), Found("", "", "", "2020-02-03", "글", "가")]
    young = await keys(one, web)
    web.found = [
        Found("", "", "", "5분 전", "글", "가"),
        Found("", "", "", "2020-02-04", "글", "가"),
    ]
    old = await keys(one, web)
    assert young[0] == old[0]
    assert young[1] != old[1]


RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="{}">{}</rdf:RDF>'
ENTRY = "<item><title>제목</title><link>/a/1</link>{}</item>"
FEEDS = {
    "rss 0.90": RDF.format("http://my.netscape.com/rdf/simple/0.9/", ENTRY.format("")),
    "rss 1.0": RDF.format("http://purl.org/rss/1.0/", ENTRY.format("")),
    "rss 0.91": f'<rss version="0.91"><channel>{ENTRY.format("")}</channel></rss>',
    "rss 2.0": '<rss version="2.0"><channel>'
    + ENTRY.format("<pubDate>Mon, 03 Feb 2020 09:00:00 +0900</pubDate>")
    + "</channel></rss>",
    "atom": '<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>제목</title>'
    '<link href="/a/1"/><updated>2020-02-03T00:00:00Z</updated></entry></feed>',
    "json": '{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [3, {"url": '
    '"/a/1", "title": "제목", "date_modified": "2020-02-03T09:00:00+09:00"}, {"id": "2"}]}',
}


@pytest.mark.parametrize("kind", FEEDS)
async def test_feeds_of_every_kind_are_read(web: Any, kind: str) -> None:
    web.pages = {f"{BASE}/list": FEEDS[kind]}
    (one,) = [item async for item in adapter("feed").poll(web)]
    assert (one.url, one.title) == (f"{BASE}/a/1", "제목")
    if kind in ("rss 2.0", "atom", "json"):
        assert one.published_at.isoformat() == "2020-02-03T00:00:00+00:00"


@pytest.mark.parametrize(
    "text", ["{", '{"items": []}', "<html></html>", '{"version": 3, "items": 1}']
)
async def test_what_is_no_feed_is_a_fetch_error(web: Any, text: str) -> None:
    web.pages = {f"{BASE}/list": text}
    with pytest.raises(FetchError, match="not an RSS, Atom or JSON feed"):
        await keys(adapter("feed"), web)


async def test_a_board_is_not_scrolled_past_known_items(web: Any) -> None:
    web.found = [Found(str(i), "", "", "", f"글 {i}", "") for i in range(9)]
    web.known = {f"{BASE}/list#item-2"}
    one = adapter("rendered", items="li", text="p")
    assert await keys(one, web) == [f"{BASE}/list#item-{i}" for i in range(3)]


async def test_a_file_is_played_back_by_the_clock(web: Any, tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl.xz"
    lines = [
        '{"date": "2020-01-01", "text": "하나"}',
        "broken",
        '{"date": "2020-03-01", "text": "둘"}',
        '{"date": "언젠가", "text": "셋"}',
    ]
    path.write_bytes(lzma.compress("\n".join(lines).encode()))
    one = adapter("replayed", path=path, timezone="UTC")
    web.now = EventClock(((1580515200.0, 0.0), (1580515200.0, 1.0)))
    assert await keys(one, web) == ["replayed://s/1"]
    assert await keys(one, web) == []
    web.now = EventClock()
    assert await keys(one, web) == ["replayed://s/3", "replayed://s/4"], "undated, not unsaid"
    assert await keys(one, web) == []


async def test_a_missing_file_is_a_fetch_error(web: Any, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"gone\.jsonl"):
        await keys(adapter("replayed", path=tmp_path / "gone.jsonl"), web)


async def test_a_played_file_is_listed_again_where_documents_wait_for_it(
    web: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    lines = [{"id": n, "date": f"2020-01-0{n}T00:00:00Z", "text": "글"} for n in (1, 2, 3)]
    path.write_text("\n".join(map(json.dumps, lines)))
    one = adapter("replayed", path=path, timezone="UTC", max_items=2)
    every = [f"replayed://s/{n}" for n in (1, 2, 3)]
    assert await keys(one, web) + await keys(one, web) == every
    assert await keys(one, web) == []
    web.all_known = lambda asked: False  # a dead process had read some, and they are read again
    assert await keys(one, web) + await keys(one, web) == every


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, st.text(alphabet="ab.0", max_size=6))
def test_dotted_names_never_fail(value: object, name: str) -> None:
    assert isinstance(dotted_text(value, name), str)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(JSON)
async def test_any_json_is_comments_or_a_fetch_error(web: Any, value: object) -> None:
    web.pages = {f"{BASE}/list": json.dumps(value)}
    with suppress(FetchError):
        await keys(adapter("comments", items="a"), web)


def test_pseudonyms_need_the_key() -> None:
    one, other = Pseudonyms(b"a"), Pseudonyms(b"b")
    assert one.of("s", "홍길동") == one.of("s", " 홍길동 ") != other.of("s", "홍길동")
    assert one.of("s", "홍길동") != one.of("t", "홍길동")
    assert one.of("s", " ") is None


def test_the_group_of_an_author_hangs_on_the_name_and_on_no_key() -> None:
    one, other = Pseudonyms(b"a"), Pseudonyms(b"b")
    names = [f"이름 {at}" for at in range(300)]
    groups = set()
    for name in names:
        grouped = [pseudonyms.grouped("s", f" {name} ") or "" for pseudonyms in (one, other)]
        assert grouped[0] != grouped[1]
        (group,) = {pseudonym.partition("#")[2] for pseudonym in grouped}
        assert grouped[0] == f"{one.of('s', name)}#{group}"
        groups.add(int(group, 16))
    assert groups == set(range(16))
    assert one.grouped("s", " ") is None
