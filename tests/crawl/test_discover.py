"""A search over the simulated web."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from constants import with_constants
from embedding.crawl.config import DiscoverConfig
from embedding.discovery.searching import Discoverer
from embedding.kernel.errors import InputError
from embedding.sources.config import SourceConfig
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.testing import AT_ONCE, running


def words(text: str) -> Mapping[str, int]:
    return Counter(text.split())


def documents() -> list[dict[str, object]]:
    parts = ("politics", "society", "life")
    return [
        {
            "date": f"2020-02-{1 + i % 27:02d}T{i % 24:02d}:00:00+00:00",
            "title": f"제목 {i}",
            "text": " ".join(f"{parts[i % 3]}낱말{(i * 7 + k) % 90}" for k in range(40)) + ".",
            "part": parts[i % 3],
        }
        for i in range(60)
    ]


@pytest.fixture(name="search")
def search_fixture(quick):
    async def search(base: str, **more: Any):
        return await _search(quick, base, **more)

    return search


async def _search(
    quick,
    base: str,
    *,
    known: tuple[SourceConfig, ...] = (),
    rejected: tuple[str, ...] = (),
    **more: Any,
):
    hosts = (base.removeprefix("http://"), *more.pop("hosts", ()))
    search = Discoverer(quick(*hosts), with_constants(DiscoverConfig, **more), words, str)
    return await search.search([f"{base}/"], known, rejected)


@pytest.fixture(scope="module")
def web():
    with running(None, documents()) as base:
        yield base


async def test_listings_are_found_once_and_explained(web: str, search) -> None:
    found = await search(web, pages=12, requests=120)
    kinds = {one.url.removeprefix(web): one.kind for one in found.candidates}
    assert kinds["/news/rss.xml"] == "feed"
    for same in ("/news/atom.xml", "/sitemap.xml", "/news/list"):
        assert found.dropped.get(web + same, "only 0%").startswith("only 0%")
        assert same not in kinds
    best = found.candidates[0]
    assert best.tokens_per_document > 20
    assert best.documents_per_day is not None
    assert best.titles[0][0].startswith("제목")
    assert "낱말" not in str(found.to_dict()), "titles, addresses and times only"
    assert found.requests <= 120


async def test_what_is_read_or_rejected_is_not_proposed(web: str, search) -> None:
    known = (
        SourceConfig(name="p", kind="feed", url=f"{web}/news/politics/rss.xml", rate=500),
        SourceConfig(name="m", kind="sitemap", url=f"{web}/news/society/sitemap.xml", rate=500),
    )
    found = await search(web, known=known, rejected=(f"{web}/sitemap.xml",), pages=12)
    urls = {one.url for one in found.candidates}
    assert not urls & {f"{web}/sitemap.xml", *(one.url for one in known)}
    assert found.dropped[f"{web}/news/politics/list"].startswith("only 0%")
    assert any("/news/life" in url or url.endswith("/news") for url in urls)
    assert all(one.difference is not None for one in found.candidates)


async def test_the_budget_holds(web: str, search) -> None:
    async with httpx.AsyncClient() as client:
        asked = (await client.get(f"{web}/control/stats")).json()["requests"]
    found = await search(web, requests=9)
    async with httpx.AsyncClient() as client:
        spent = (await client.get(f"{web}/control/stats")).json()["requests"]
    paid = sum(spent.values()) - sum(asked.values()) - 1
    robots = spent.get("/robots.txt", 0) - asked.get("/robots.txt", 0)
    assert found.requests == 9
    assert paid - robots <= 9 + 1, "beside the page of statistics itself"


async def test_a_small_budget_is_not_spent_on_looking_for_listings_alone(web: str, search) -> None:
    found = await search(web, requests=20)
    assert found.candidates
    assert found.requests <= 20


async def test_a_sample_behind_a_refresh_and_a_frame_is_read(search) -> None:
    habits = ("frames", "refresh")
    config = SimwebConfig(speed=AT_ONCE, autostart=True, crawl_delay=0, habits=habits)
    with running(config, documents()) as base:
        found = await search(base, pages=2, requests=60)
        async with httpx.AsyncClient() as client:
            asked = (await client.get(f"{base}/control/stats")).json()["requests"]
    assert asked["/news/PostView.nhn"] > 0
    assert found.refused["empty"] == 0


async def test_no_other_host_and_nothing_that_robots_forbids_is_asked(
    site, other_site, reply, search
) -> None:
    places = ((other_site.base, "a"), (site.base, "private"), (site.base, "b"))
    links = "".join(f'<a href="{base}/{path}/rss.xml">x</a>' for base, path in places)
    site.answers["/robots.txt"] = reply(
        f"User-agent: *\nDisallow: /private/\nSitemap: {other_site.base}/sitemap.xml\n"
    )
    site.answers["/"] = reply(f"<html><body>{links}</body></html>")
    found = await search(site.base, hosts=(other_site.host,))
    assert other_site.asked == []
    assert not any(path.startswith("/private") for path in site.asked)
    assert "/b/rss.xml" in site.asked
    assert found.refused["robots"] == 1


async def test_further_domains_may_be_looked_at(site, reply, quick) -> None:
    site.answers["/"] = reply('<html><body><a href="/rss">x</a></body></html>')
    found = Discoverer(quick(site.host), DiscoverConfig(domains=("example.kr",)), words, str)
    await found.search([f"{site.base}/"])
    assert found.allowed("https://news.example.kr/rss")
    assert found.allowed("https://example.kr/")
    assert not found.allowed("https://badexample.kr/")


@pytest.mark.parametrize("seed", ["ftp://x.kr", "news", "http://", ""])
async def test_a_seed_that_is_no_address(seed: str, quick) -> None:
    with pytest.raises(InputError, match="an http or https address is accepted"):
        await Discoverer(quick(), DiscoverConfig(), words, str).search([seed])
