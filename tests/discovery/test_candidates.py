from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.crawl.shingles import signature
from embedding.discovery.ranking import (
    Known,
    Listed,
    SampledDocument,
    named,
    rank,
)
from embedding.discovery.searching import read_links


def text(*words: str) -> str:
    return " ".join(f"{word}{n}" for n in range(30) for word in words)


def sample(url: str, *words: str) -> SampledDocument:
    body = text(*words)
    return SampledDocument(url, Counter(body.split()), signature(body))


def listed(name: str, kind: str, ids: range, *words: str, requests: int = 1) -> Listed:
    urls = tuple(f"https://x.kr/a/{n}" for n in ids)
    samples = tuple(sample(url, url[-2:], *words) for url in urls[:4])
    return Listed(
        kind, f"https://x.kr/{name}", "https://x.kr/", urls, samples=samples, requests=requests
    )


def test_of_several_listings_of_the_same_articles_the_cheapest_is_proposed() -> None:
    feed = listed("rss", "feed", range(10, 60), "시장")
    atom = listed("atom.xml", "feed", range(10, 60), "시장")
    pages = listed("list", "page", range(10, 60), "시장", requests=5)
    chosen, dropped = rank([pages, atom, feed], Known())
    assert [one.url for one in chosen] == [feed.url]
    assert {one.url for one, _ in dropped} == {atom.url, pages.url}
    assert all("0% of what it lists is new" in why for _, why in dropped)


def test_what_is_read_already_is_no_proposal_and_a_part_of_it_counts_less() -> None:
    known = Known().with_(listed("rss", "feed", range(10, 60), "시장"))
    chosen, dropped = rank([listed("map", "sitemap", range(35, 85), "시장")], known)
    assert [one.new for one in chosen] == [0.5]
    assert not dropped


def test_copies_under_other_addresses_are_not_new() -> None:
    original = listed("rss", "feed", range(10, 20), "시장")
    samples = tuple(
        SampledDocument(f"https://copy.kr/{one.url[-2:]}", one.words, one.signature)
        for one in original.samples
    )
    copy = Listed(
        "feed", "https://copy.kr/rss", "", tuple(one.url for one in samples), samples=samples
    )
    chosen, dropped = rank([copy], Known().with_(original))
    assert not chosen
    assert dropped


def test_other_words_go_before_the_same_words() -> None:
    known = Known().with_(listed("rss", "feed", range(10, 20), "시장"))
    same = listed("same", "feed", range(20, 40), "시장")
    other = listed("other", "feed", range(40, 60), "바다")
    chosen, _ = rank([same, other], known)
    assert [one.url for one in chosen] == [other.url, same.url]
    assert chosen[0].difference == pytest.approx(1.0), "all words are different"
    assert chosen[0].difference > chosen[1].difference


def test_a_listing_without_texts_brings_nothing() -> None:
    empty = Listed("feed", "https://x.kr/rss", "", ("https://x.kr/a/1",))
    chosen, dropped = rank([empty], Known())
    assert not chosen
    assert dropped[0][1] == "no text was found behind what it lists"


def test_names_are_unique_and_valid() -> None:
    chosen, _ = rank([listed("뉴스/rss?x=1", "feed", range(10, 20), "시장")], Known())
    assert [one.name for one in chosen] == ["x.kr-rss"]
    assert [one.name for one in named(chosen, ["x.kr-rss"])] == ["x.kr-rss-2"]


def test_documents_a_day() -> None:
    start = datetime(2020, 2, 1, tzinfo=UTC)
    feed = listed("rss", "feed", range(10, 20), "시장")
    for times, rate in ((9, pytest.approx(4.0)), (1, None)):
        timed = replace(feed, times=tuple(start + timedelta(hours=6 * n) for n in range(times)))
        assert rank([timed], Known())[0][0].documents_per_day == rate


PAGE = """<html><head><link rel="alternate" type="application/rss+xml" href="/news.xml">
<link rel="sitemap" href="/map.xml"></head><body><a href="/rss/all">RSS</a>
<a href="/sitemap_index.xml">map</a> <a href="logo.png">x</a> <a rel="nofollow" href="/login">x</a>
<a href="mailto:a@b.kr">m</a> <a href="/about#team">about</a> <a href="?page=2" rel="next">2</a>
%s</body></html>"""


def test_links_of_a_page() -> None:
    articles = "".join(f'<a href="/view/{n}">t</a>' for n in range(1000, 1012))
    found = read_links(PAGE % articles, "https://x.kr/list")
    assert found.feeds == ("https://x.kr/news.xml", "https://x.kr/rss/all")
    assert found.sitemaps == ("https://x.kr/map.xml", "https://x.kr/sitemap_index.xml")
    assert found.others[:2] == ("https://x.kr/about", "https://x.kr/list?page=2")
    assert found.articles == r"/view/[^/?#]+(?:[?#]|$)"
    assert found.following == "a[rel=next]"
    assert read_links(PAGE % "", "https://x.kr/").articles is None


def test_addresses_that_differ_in_their_query() -> None:
    def articles(address: str) -> str | None:
        links = "".join(f'<a href="{address}{n}">t</a>' for n in range(100, 120))
        return read_links(PAGE % links, "https://x.kr/list").articles

    assert articles("/view.php?board=a&amp;no=") == r"/view\.php\?(?:[^#]*&)?no="
    assert articles("/list?page=") is None


@given(st.text(), st.text())
def test_any_page_is_read_or_refused(body: str, path: str) -> None:
    from embedding.kernel.errors import FetchError

    try:
        found = read_links(body, f"https://x.kr/{path}")
    except FetchError:
        return
    assert all(url.startswith("http") for url in (*found.feeds, *found.sitemaps, *found.others))
