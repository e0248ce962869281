import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from embedding.sources.links import join, linked

BASE = "https://news.example/board/list.php?id=free"


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("view.php?no=7", "https://news.example/board/view.php?no=7"),
        ("/a/../b/./c", "https://news.example/b/c"),
        ("..", "https://news.example/"),
        ("%2e%2e/x", "https://news.example/x"),
        ("\\a\\b", "https://news.example/a/b"),
        ("//m.news.example/1", "https://m.news.example/1"),
        ("https:/a/1", "https://news.example/a/1"),
        ("https:view.php?no=1", "https://news.example/board/view.php?no=1"),
        ("?101", "https://news.example/board/list.php?101"),
        ("#top", "https://news.example/board/list.php?id=free#top"),
        (" /a\n/b\t", "https://news.example/a/b"),
        ("view;no=7", "https://news.example/board/view;no=7"),
        ("view?no=&page=2", "https://news.example/board/view?no=&page=2"),
        ("view?id=%B0%A1%b3%AA", "https://news.example/board/view?id=%B0%A1%b3%AA"),
        ("/가/나", "https://news.example/%EA%B0%80/%EB%82%98"),
        ("HTTPS://News.Example/A", "https://news.example/A"),
        ("https:x", "https://news.example/board/x"),
        ("mailto:a@b.kr", ""),
        ("javascript:void(0)", ""),
        ("http://", ""),
        ("http://a:0/", ""),
        ("http://[::1/", ""),
        (None, ""),
        ("", ""),
    ],
)
def test_links_are_resolved_as_browsers_do(link: str | None, expected: str) -> None:
    assert join(BASE, link) == expected


def test_letters_of_a_query_are_sent_in_the_encoding_of_the_page() -> None:
    assert join(BASE, "view?q=가나", "cp949").endswith("view?q=%B0%A1%B3%AA")
    assert join(BASE, "/가?q=가", "cp949").endswith("/%EA%B0%80?q=%B0%A1")
    for unicode in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le"):
        assert join(BASE, "view?q=가", unicode).endswith("view?q=%EA%B0%80")
    assert join(BASE, "view?q=가", "no such").endswith("view?q=%EA%B0%80")
    assert join(BASE, "view?q=☃", "cp949").endswith("view?q=&%239731;")


NAMES = st.text("abcxyz_", min_size=1, max_size=6)
VALUES = st.text("abc019%+-._~;:@!$'()*,/?", max_size=8)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=4), st.sampled_from(["", "&", "#x"]))
def test_no_value_is_lost(pairs: list[tuple[str, str]], end: str) -> None:
    query = "&".join(f"{name}={value}" for name, value in pairs).replace("'", "%27")
    link = f"read.php?{query}{end}" if query else "read.php"
    assert join(BASE, link).endswith(link)


@given(st.text(max_size=60), st.sampled_from(["utf-8", "cp949", "utf-16", "johab"]))
def test_nothing_makes_it_fail(link: str, encoding: str) -> None:
    whole = join(BASE, link, encoding)
    assert whole == "" or whole.startswith(("http://", "https://"))
    assert whole.isascii() or "://" in whole


@pytest.mark.parametrize(
    ("script", "call"),
    [
        ("function go(b, n) { location.href = '/v?b=' + b + '&n=' + n; }", "go('free', 7)"),
        ("function go(b, n) { var u = `/v?b=${b}&n=` + n; location.href = u; }", "go('free','7')"),
        ("const go = (b, n) => { location.href = '/v?b=' + b + '&n=' + n; }", "go('free', 7)"),
        ("const go = b => location.href = `/v?b=${b}&n=7`;", "go('free')"),
        (
            "function go(b, n) { window.open('/v?b=' + encodeURIComponent(b) + '&n=' + n, 'w'); }",
            "go('free', 7)",
        ),
    ],
)
def test_a_function_of_several_arguments_and_variables_is_followed(script: str, call: str) -> None:
    page = html.document_fromstring(f'<script>{script}</script><a href="javascript:{call}">x</a>')
    assert linked(page.find(".//a"), BASE) == "https://news.example/v?b=free&n=7"
    unknown = script.replace("'/v?b='", "x + '/v?b='").replace("`/v?b=", "`/v?x=${x}&b=")
    page = html.document_fromstring(f'<script>{unknown}</script><a href="javascript:{call}">x</a>')
    assert linked(page.find(".//a"), BASE) == ""


def test_a_host_with_a_space_in_it_is_none() -> None:
    assert join(BASE, "http://a b/x") == ""
