"""A text without a date is in no window, unless its source says that it counts as new."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crawling import crawl
from embedding.crawl.config import CrawlConfig
from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.origins import Publication
from embedding.crawl.services import ReplayClock, Services
from embedding.sources.config import SourceConfig

PATHS = [f"/a/{n}" for n in range(6)]


@pytest.fixture
def frontier(tmp_path: Path) -> Iterator[Frontier]:
    found = Frontier(f"sqlite:///{tmp_path}/frontier.db")
    yield found
    found.close()


def page(n: object, head: str = "") -> str:
    text = " ".join(f"낱말{n}{k}은 시민의 의견을 담는다." for k in range(12))
    return (
        f"<html><head>{head}</head><body><article><h1>글</h1><p>{text}</p></article></body></html>"
    )


def listing(site: Any, reply: Any, row: str = '<a href="{0}">글</a>', **more: Any) -> SourceConfig:
    """A page source over `site`; its listing has a row for each of its six pages."""
    site.answers["/list"] = reply("".join(row.format(path) for path in PATHS))
    site.answers |= {path: reply(page(n)) for n, path in enumerate(PATHS)}
    fields: dict[str, Any] = {"links": "/a/", "every": 0.1, "rate": 1000.0, **more}
    return SourceConfig(name="s", kind="page", url=f"{site.base}/list", **fields)


def settled(crawler: Crawler) -> bool:
    """Whether the source was read to its end."""
    row = crawler.report()["s"]
    return row["listed"] >= len(PATHS) and row["pending"] == 0


async def test_what_has_no_date_is_counted_and_not_handed_on(
    site: Any, quick: Any, reply: Any, frontier: Frontier, caplog: Any
) -> None:
    crawler = Crawler([listing(site, reply)], quick(site.host), frontier)
    assert await crawl(crawler, lambda _: settled(crawler)) == []
    row = crawler.report()["s"]
    assert row["errors"] == {"undated": 6}
    assert "no date that can be read" in row["last_error"]
    assert (row["documents"], row["dated"]) == (0, {})
    assert row["alarm"] is not None
    assert "see its setting `undated`" in row["alarm"]["sentence"]
    assert row["alarms"] == {"undated": 1}
    assert caplog.text.count("alarm undated") == 1, "named once"


async def test_a_source_that_shows_what_is_new_may_count_by_when_it_was_fetched(
    site: Any, quick: Any, reply: Any, frontier: Frontier
) -> None:
    before = datetime.now(UTC)
    crawler = Crawler([listing(site, reply, undated="fetched")], quick(site.host), frontier)
    found = await crawl(crawler, lambda found: len(found) == len(PATHS))
    assert all(before <= one.published_at <= datetime.now(UTC) for one in found)
    row = crawler.report()["s"]
    assert (row["dated"], row["errors"], row["alarm"]) == ({"fetched": 6}, {}, None)


async def test_what_had_no_date_is_read_once_more_when_the_setting_says_what_to_take(
    site: Any, quick: Any, reply: Any, frontier: Frontier
) -> None:
    source = listing(site, reply)
    first = Crawler([source], quick(site.host), frontier)
    assert await crawl(first, lambda _: settled(first)) == []
    then = datetime.now(UTC)
    changed = source.model_copy(update={"undated": "fetched"})
    second = Crawler([changed], quick(site.host), frontier)
    found = await crawl(second, lambda found: len(found) == len(PATHS))
    assert {one.url for one in found} == {site.base + path for path in PATHS}
    assert all(one.published_at <= then for one in found), "when it was fetched first"


async def test_one_date_is_enough_for_no_alarm_and_one_yet_to_come_is_none(
    site: Any, quick: Any, reply: Any, frontier: Frontier
) -> None:
    source = listing(site, reply)
    soon = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    meta = '<meta property="article:published_time" content="{}">'
    site.answers["/a/5"] = reply(page("가", meta.format("2024-03-01T09:00+09:00")))
    site.answers["/a/4"] = reply(page("나", meta.format(soon)))
    crawler = Crawler([source], quick(site.host), frontier)
    found = await crawl(crawler, lambda _: settled(crawler))
    assert [one.url for one in found] == [f"{site.base}/a/5"]
    row = crawler.report()["s"]
    assert (row["errors"], row["dated"]) == ({"undated": 5}, {"metadata": 1})
    assert row["alarms"].get("undated", 0) <= 1
    assert row["alarm"] is None


@pytest.mark.parametrize("undated", ["unknown", "fetched"])
async def test_a_comment_without_a_time_is_counted_once_however_often_it_is_listed(
    site: Any, quick: Any, reply: Any, frontier: Frontier, undated: Any
) -> None:
    rows = [{"id": str(n), "text": f"{n} 번째 댓글", "at": None} for n in range(3)]
    rows.append({"id": "x", "text": "날짜가 있는 댓글", "at": "2024-03-01 09:00"})
    body = json.dumps({"comments": rows})
    site.answers["/api"] = reply(body, content_type="application/json")
    source = SourceConfig(
        name="s",
        kind="comments",
        url=f"{site.base}/api",
        time="at",
        every=0.05,
        rate=1000.0,
        undated=undated,
    )
    crawler = Crawler([source], quick(site.host), frontier)
    found = await crawl(crawler, lambda found: site.asked.count("/api") >= 4 and found)
    row = crawler.report()["s"]
    left_out, handed_on = (3, 1) if undated == "unknown" else (0, 4)
    assert (row["errors"].get("undated", 0), len(found)) == (left_out, handed_on)
    assert row["listed"] == 4


async def test_relative_times_of_a_listing_and_of_a_page_count_from_when_they_were_fetched(
    site: Any, quick: Any, reply: Any, frontier: Frontier
) -> None:
    row = '<li><a href="{0}">글</a><span class="when">3일 전</span></li>'
    source = listing(site, reply, row, items="li", time=".when")
    own = page("다").replace("</h1>", '</h1><span class="date">2시간 전</span>')
    site.answers["/a/0"] = reply(own)
    crawler = Crawler([source], quick(site.host), frontier)
    found = await crawl(crawler, lambda found: len(found) == len(PATHS))
    age = {one.url.rpartition("/")[2]: datetime.now(UTC) - one.published_at for one in found}
    assert timedelta(hours=2) <= age.pop("0") < timedelta(hours=3)
    assert all(timedelta(days=3) <= one < timedelta(days=3, hours=1) for one in age.values())
    assert crawler.report()["s"]["dated"] == {"listing": 5, "text": 1}


def test_the_most_trusted_of_several_times_counts_unless_it_is_yet_to_come(
    frontier: Frontier,
) -> None:
    services = Services(CrawlConfig(), frontier)
    now, listed, own = (datetime(year, 6, 1, tzinfo=UTC) for year in (2024, 2023, 2015))
    source = SourceConfig(name="s", kind="page", url="https://example.org/")
    by_list = Publication(listed, "listing")

    def counts(own: datetime | None, by_list: Publication = by_list) -> datetime | None:
        return services.publication(source, now, by_list, Publication(own, "metadata")).at

    assert counts(own) == own
    assert counts(None) == listed
    assert counts(now + timedelta(days=40)) == listed
    assert counts(None, Publication()) is None


async def test_what_is_played_is_not_yet_to_come_because_the_clock_was_read_long_ago(
    site: Any, quick: Any, reply: Any, frontier: Frontier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy crawler reads the clock of the played web late; the web has gone on meanwhile."""
    early, played = (datetime(2021, 4, day, tzinfo=UTC).timestamp() for day in (1, 20))
    asked: list[float] = []

    async def clock(_path: str, _headers: dict[str, str], writer: Any) -> None:
        asked.append(early if len(asked) < 2 else played)
        writer.write(reply(json.dumps({"knots": [[asked[-1], 0.0]]})))

    row = '<li><a href="{0}">글</a><span class="when">2021-04-20</span></li>'
    source = listing(site, reply, row, items="li", time=".when")
    site.answers["/clock.json"] = clock
    monkeypatch.setattr(ReplayClock, "EVERY_S", 3600.0)
    config = quick(site.host, replay_clock_url=f"{site.base}/clock.json")
    crawler = Crawler([source], config, frontier)
    found = await crawl(crawler, lambda found: len(found) == len(PATHS) or settled(crawler))
    assert len(found) == len(PATHS)
    assert crawler.report()["s"]["errors"] == {}
