"""Sitemaps as sites write them."""

import gzip
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, ListingPage
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import read_listing

URL = "https://news.example/sitemap.xml"
NAMESPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" '
    'xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" '
    'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" '
    'xmlns:xhtml="http://www.w3.org/1999/xhtml"'
)
LOC = "<loc>https://news.example/1</loc>"
LASTMOD = "<lastmod>2024-05-01T00:00:00Z</lastmod>"
IMAGE = "<image:image><image:loc>https://i.example/p.jpg</image:loc><image:title>사진</image:title></image:image>"
VIDEO = (
    "<video:video><video:title>영상</video:title><video:content_loc>https://v.example/v"
    "</video:content_loc><video:publication_date>2010-01-01</video:publication_date></video:video>"
)
NEWS = (
    "<news:news><news:publication><news:name>신문</news:name></news:publication>"
    "<news:publication_date>2024-04-30T00:00:00Z</news:publication_date>"
    "<news:title>기사</news:title></news:news>"
)
OTHER = (
    '<xhtml:link rel="alternate" href="https://en.news.example/1"/><changefreq>daily</changefreq>'
)


SOURCE = SourceConfig(name="s", kind="sitemap", url=URL, timezone="UTC")


def read(text: str | bytes) -> ListingPage:
    body = text if isinstance(text, bytes) else text.encode()
    packed = body.startswith(b"\x1f\x8b")
    return read_listing(SOURCE, FetchedPage(URL, "" if packed else body.decode(), body, {}))


@given(st.permutations([LOC, LASTMOD, IMAGE, VIDEO, NEWS, OTHER]), st.integers(0, 6))
def test_pictures_and_videos_are_not_the_article(parts: list[str], kept: int) -> None:
    parts = [part for at, part in enumerate(parts) if at < kept or part == LOC]
    found = read(f"<urlset {NAMESPACES}><url>{''.join(parts)}</url></urlset>").references
    assert [one.url for one in found] == ["https://news.example/1"]
    day = "2024-04-30" if NEWS in parts else "2024-05-01" if LASTMOD in parts else "None"
    assert str(found[0].published_at)[:10] == day
    assert found[0].title == ("기사" if NEWS in parts else "")
    assert found[0].is_lastmod is (LASTMOD in parts and NEWS not in parts)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=4))
def test_a_bare_ampersand_stands_for_itself(pairs: list[tuple[str, int]]) -> None:
    address = "https://news.example/v?" + "&".join(f"{name}={value}" for name, value in pairs)
    for written in (address, address.replace("&", "&amp;"), f"<![CDATA[{address}]]>"):
        found = read(f"<urlset><url><loc>{written}</loc></url></urlset>").references
        assert [one.url for one in found] == [address]


def test_a_text_file_with_an_address_a_line() -> None:
    found = read("\ufeffhttps://news.example/1\r\n\r\nhttps://news.example/2\n").references
    assert [one.url for one in found] == ["https://news.example/1", "https://news.example/2"]
    with pytest.raises(FetchError, match="not a sitemap"):
        read("This page was not found.\nGo home.\n")


@given(st.integers(1, 5), st.sampled_from(["utf-8", "euc-kr"]))
def test_a_file_of_several_gzip_members(members: int, encoding: str) -> None:
    names = [f"https://news.example/{n}" for n in range(12)]
    text = "".join(f"<url><loc>{name}</loc></url>" for name in names)
    whole = f'<?xml version="1.0" encoding="{encoding}"?><urlset>{text}</urlset>'.encode(encoding)
    size = len(whole) // members + 1
    parts = [gzip.compress(whole[at : at + size]) for at in range(0, len(whole), size)]
    assert [one.url for one in read(b"".join(parts)).references] == names


def test_an_index_whose_addresses_stand_without_loc() -> None:
    inside = "".join(f"<sitemap>\nhttps://news.example/s?p={n}\n</sitemap>" for n in (1, 2))
    found = read(f"<sitemapindex>{inside}<sitemap>no address</sitemap></sitemapindex>").children
    assert [one.url for one in found] == [f"https://news.example/s?p={n}" for n in (1, 2)]


def test_a_sitemap_may_be_a_feed() -> None:
    item = "<item><title>글</title><link>https://news.example/1</link></item>"
    rss = f'<?xml version="1.0"?><rss version="2.0"><channel>{item}</channel></rss>'
    listing = read_listing(SOURCE, FetchedPage(URL, rss, rss.encode(), {}))
    assert [one.url for one in listing.references] == ["https://news.example/1"]


def test_warnings_before_a_sitemap_and_a_cut_at_its_end() -> None:
    whole = f"<urlset {NAMESPACES}><url>{LOC}{LASTMOD}</url><url><loc>https://news.exam"
    for begin in ("", "Warning: no index in x.php<br>\n<?xml version='1.0'?>"):
        assert [one.url for one in read(begin + whole).references] == ["https://news.example/1"]


def test_letters_of_a_sitemap_in_text_are_encoded() -> None:
    assert read("https://news.example/가").references[0].url.endswith("/%EA%B0%80")


def test_elements_of_a_namespace_that_is_not_declared() -> None:
    news = "<news:news><news:publication_date>2024-03-01</news:publication_date></news:news>"
    text = f"<urlset><url><loc>https://news.example/1</loc>{news}</url></urlset>"
    page = FetchedPage("https://news.example/sitemap.xml", text, text.encode(), {})
    [found] = read_listing(SOURCE, page).references
    assert (found.published_at, found.is_lastmod) == (datetime(2024, 3, 1, tzinfo=UTC), False)
