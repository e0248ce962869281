"""The crawler on a web with the habits of real boards, blogs and templates, all at once."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx

from crawling import crawl
from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.kernel.records import Document
from embedding.sources.config import load_sources
from yeoron_simweb.config import HABITS, SimwebConfig
from yeoron_simweb.sources import PART_OF_SOURCE, sources_toml
from yeoron_simweb.testing import AT_ONCE, running

KST = ZoneInfo("Asia/Seoul")
WEB = SimwebConfig(
    speed=AT_ONCE,
    autostart=True,
    crawl_delay=0,
    habits=tuple(HABITS),
    last_day="2021-01-14",
    documents_per_day=60,
)


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def off(document: Document, article: dict[str, Any]) -> float:
    """Seconds by which a document's time differs from its article's, as exact as that is known."""
    when, true = document.published_at, datetime.fromisoformat(article["time"])
    if article["exact"] == "day":
        return (when.astimezone(KST).date() - true.astimezone(KST).date()).total_seconds()
    return abs((when - true).total_seconds())


async def test_every_article_is_read_once_and_at_its_right_time(quick: Any, tmp_path: Path) -> None:
    file, frontier = tmp_path / "sources.toml", Frontier(f"sqlite:///{tmp_path}/frontier.db")
    with running(WEB) as base:
        articles = httpx.get(f"{base}/control/articles").json()
        file.write_text(sources_toml(base, rendered=False, habits=WEB.habits), encoding="utf-8")
        sources = [one.model_copy(update={"rate": 1000.0}) for one in load_sources(file)]
        host = base.removeprefix("http://")
        crawler = Crawler(
            sources, quick(host, replay_clock_url=f"{base}/clock.json", per_host=4), frontier
        )
        found = await crawl(crawler, lambda found: len(found) >= len(articles))
        report = crawler.report()
        statistics = httpx.get(f"{base}/control/stats").json()
    frontier.close()
    texts = {letters(article["text"]): article for article in articles}
    assert len(texts) == len(articles)
    read = [
        next((one for text, one in texts.items() if text in letters(document.text)), None)
        for document in found
    ]
    assert None not in read
