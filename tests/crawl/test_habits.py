"""The crawler on a web with the habits of real boards, blogs and templates, all at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx

from crawling import crawl
from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.kernel.records import Document
from embedding.sources.config import SourceConfig, load_sources
from yeoron_simweb.config import HABITS, SimwebConfig
from yeoron_simweb.sources import PART_OF_SOURCE, sources_toml
from yeoron_simweb.testing import AT_ONCE, running

WEB = SimwebConfig(
    speed=AT_ONCE,
    autostart=True,
    crawl_delay=0,
    feed_items=1000,
    habits=tuple(HABITS),
    last_day=date(2021, 1, 8),
    documents_per_day=40,
)
EXACT = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
KST = ZoneInfo("Asia/Seoul")

Read = dict[str, list[tuple[Document, Mapping[str, Any]]]]
"""Documents by source, each with the article of the simulated web that it holds."""


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def is_right(document: Document, article: Mapping[str, Any]) -> bool:
    """Whether a document has its article's time, as exactly as that can be known."""
    true, exact = datetime.fromisoformat(article["time"]), article["exact"]
    if exact == "day":
        midnight = datetime.combine(true.astimezone(KST), datetime.min.time(), KST)
        return document.published_at == midnight
    return exact is None or abs(document.published_at - true) < EXACT[exact]


async def read(
    web: SimwebConfig, folder: Path, quick: Callable[..., Any], *names: str
) -> tuple[Read, dict[str, Any]]:
    """What the sources of these names bring, and the crawler's report, once nothing is left."""
    frontier = Frontier(f"sqlite:///{folder}/frontier.db")
    file = folder / "sources.toml"
    with running(web) as base, httpx.Client(base_url=base) as client:
        text = sources_toml(base, every=0.5, rendered=False, habits=web.habits)
        file.write_text(text, encoding="utf-8")
        sources = [
            source.model_copy(update={"rate": 1000.0})
            for source in load_sources(file)
            if source.name in names
        ]
        config = quick(base.removeprefix("http://"), replay_clock_url=f"{base}/clock.json")
        crawler = Crawler(sources, config, frontier)
        parts = {PART_OF_SOURCE[source.name] for source in sources}
        truth: list[Mapping[str, Any]] = []

        def over(found: list[Document]) -> bool:
            statistics = client.get("/control/stats").json()
            published = sum(statistics["parts"][part]["published"] for part in parts)
            rows = crawler.report().values()
            pending = sum(row["pending"] for row in rows)
            undated = sum(row["errors"].get("undated", 0) for row in rows)
            if statistics["state"] != "done" or len(found) + undated < published or pending:
                return False
            truth[:] = client.get("/control/articles").json()
            return True

        found = await crawl(crawler, over, seconds=600)
        report = dict(crawler.report())
    frontier.close()
    articles = {letters(one["text"]): one for one in truth if one["part"] in parts}
    by_source: Read = {name: [] for name in names}
    for document in found:
        held = [one for text, one in articles.items() if text in letters(document.text)]
        by_source[document.source] += [(document, one) for one in held]
    dated = {one["id"] for one in articles.values() if one["exact"] is not None}
    assert len(dated) == sum(map(len, by_source.values())) == len(found)
    assert {one["id"] for pairs in by_source.values() for _, one in pairs} == dated
    undated = sum(row["errors"].get("undated", 0) for row in report.values())
    assert undated == len(articles) - len(dated), "what nobody can date is counted"
    return by_source, report


async def test_every_article_is_read_once_and_at_its_right_time(quick: Any, tmp_path: Path) -> None:
    by_source, report = await read(WEB, tmp_path, quick, *PART_OF_SOURCE)
    for name, pairs in by_source.items():
        assert {article["part"] for _, article in pairs} == {PART_OF_SOURCE[name]}
        assert [a for d, a in pairs if not is_right(d, a)] == [], name
        assert report[name]["errors"].keys() <= {"undated"}, name
    exact = {
        name: Counter(article["exact"] for _, article in pairs) for name, pairs in by_source.items()
    }
    assert exact["sim-list"].keys() == EXACT.keys()
    assert report["sim-sitemap"]["errors"]["undated"] > 0
    assert len(exact["sim-board"]) == len(exact["sim-feed"]) == len(exact["sim-euckr"]) == 1
    board = [document for document, _ in by_source["sim-board"]]
    assert all(document.author for document in board)
    assert not any("글쓴이" in document.text for document in board)


async def test_a_board_whose_rows_and_pages_are_scripts_is_read_whole(
    site: Any, quick: Any, reply: Any
) -> None:
    text = " ".join(f"낱말{k}은 시민의 의견을 담는다." for k in range(12))
    pager = "".join(
        f"<a class=p href='#' onclick=\"location.href='list?page={n}'\">{n}</a>" for n in (1, 2, 3)
    )
    for n in (1, 2, 3):
        row = f"<tr onclick=\"location.href='/read?no={n}'\"><td>글 {n}</td></tr>"
        answer = reply(
            f"<html><table>{row}</table><button onclick=\"location.href='/read?no={n}&del=1'\">"
            f"지우기</button>{pager}</html>"
        )
        site.answers[f"/list?page={n}"] = answer
        if n == 1:
            site.answers["/list"] = answer
        moved = f"<html><script>location.replace('/text?no={n}')</script></html>"
        site.answers[f"/read?no={n}"] = reply(moved)
        site.answers[f"/text?no={n}"] = reply(
            f"<html><body><p>{n} {text} {n}{n}{n}</p></body></html>"
        )
    source = SourceConfig(
        name="s",
        kind="page",
        url=f"{site.base}/list",
        next=".p",
        undated="fetched",
        every=0.1,
        rate=1000.0,
        links="read",
    )
    frontier = Frontier("sqlite://")
    crawler = Crawler([source], quick(site.host, near_window=0), frontier)
    found = await crawl(crawler, lambda found: len(found) == 3)
    assert sorted(one.url for one in found) == [f"{site.base}/read?no={n}" for n in (1, 2, 3)]
    assert not any("del" in path for path in site.asked)
    frontier.close()


async def test_posts_that_move_to_the_next_page_of_an_old_board_are_read_once(
    quick: Any, tmp_path: Path
) -> None:
    """The board grows while it is read: its links name the page on which a post is now."""
    web = WEB.model_copy(update={"max_backlog": 15, "page_items": 10})
    by_source, _ = await read(web, tmp_path, quick, "sim-board")
    assert len(by_source["sim-board"]) > 40
