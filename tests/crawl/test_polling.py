"""The schedule in the crawler: real listings, real budgets, and a restart."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from crawling import crawl
from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.services import PollQueue
from embedding.sources.config import SourceConfig


def feed(n: int) -> str:
    items = "".join(
        f"<item><link>http://e.org/{i}</link><title>{i}</title></item>" for i in range(n)
    )
    return f"<rss version='2.0'><channel><title>t</title>{items}</channel></rss>"


async def polled_until(crawler: Crawler, enough: Any) -> dict[str, Any]:
    """Run the crawler until its report satisfies `enough`."""
    report: dict[str, Any] = {}

    def satisfied() -> bool:
        report.update(crawler.report())
        return bool(enough(report))

    await crawl(crawler, lambda _: satisfied(), acknowledge=False)
    return report


async def test_the_report_shows_rates_and_a_restart_keeps_them(
    site: Any, quick: Any, reply: Any, tmp_path: Path
) -> None:
    site.answers = {"/rss": reply(feed(3), content_type="application/rss+xml")}
    source = SourceConfig(name="s", kind="feed", url=f"{site.base}/rss", every=0.1, links="none")
    config = quick(site.host, poll_share=1.0)
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")

    def looked(report: Any, n: int) -> bool:
        return bool(report and report["s"]["poll"] and report["s"]["poll"]["polls"] >= n)

    first = await polled_until(Crawler([source], config, frontier), lambda r: looked(r, 5))
    poll = first["s"]["poll"]
    assert poll["changed_polls"] == 0
    assert 0 < poll["changes_per_hour"] < 3600 / 0.1
    second = await polled_until(Crawler([source], config, frontier), lambda r: looked(r, 6))
    assert second["s"]["poll"]["polls"] >= 6
    frontier.close()


async def test_listings_of_one_host_share_its_budget(
    site: Any, quick: Any, reply: Any, tmp_path: Path
) -> None:
    names = [f"s{n}" for n in range(8)]
    site.answers = {f"/{n}": reply(feed(1), content_type="application/rss+xml") for n in names}
    sources = [
        SourceConfig(name=n, kind="feed", url=f"{site.base}/{n}", every=0.05, links="none")
        for n in names
    ]
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    crawler = Crawler(sources, quick(site.host, rate=20.0, poll_share=0.5), frontier)
    began = time.monotonic()

    def enough(report: Any) -> bool:
        """All took poll_queue, for 3 s at least."""
        return time.monotonic() - began > 3.0 and {f"/{n}" for n in names} <= set(site.asked)

    await polled_until(crawler, enough)
    took = time.monotonic() - began
    asked = [path for path in site.asked if path != "/robots.txt"]
    assert len(asked) <= 10 * took + 6
    assert {path.strip("/") for path in asked} == set(names)
    frontier.close()


@pytest.mark.parametrize("state", ["{", "[]", "{}", '{"changes": {}, "age": 1, "cost": 1}'])
async def test_a_broken_memory_is_passed_over(quick: Any, tmp_path: Path, state: str) -> None:
    import sqlalchemy as sa

    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    statement = sa.text("insert into frontier_polls (source, state, saved_at) values ('s', :x, 1)")
    with frontier._engine.begin() as connection:
        connection.execute(statement, {"x": state})
    poll_queue = PollQueue(quick(), frontier.polls())
    with poll_queue.taking_part(SourceConfig(name="s", kind="feed", url="http://e.org/rss")):
        await asyncio.wait_for(poll_queue.wait("s"), 60)
        poll_queue.polled("s", changed=True, requests=1)
        assert poll_queue.report("s") is not None
    assert poll_queue.report("s") is None
    frontier.close()


async def test_a_waiting_source_can_be_cancelled(quick: Any, tmp_path: Path) -> None:
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    poll_queue = PollQueue(quick(), frontier.polls())
    with poll_queue.taking_part(SourceConfig(name="s", kind="feed", url="http://e.org/rss")):
        await poll_queue.wait("s")
        poll_queue.polled("s", changed=True, requests=1)
        waiting = asyncio.create_task(poll_queue.wait("s"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        done, _ = await asyncio.wait({waiting}, timeout=60)
        assert done
        assert waiting.cancelled()
    frontier.close()
