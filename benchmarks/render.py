"""Rendered pages a minute, pages lost, and the memory of the browser over the run.

    python -m benchmarks render --pages 400

The real pool renders the pages of posts of the simulated web's JavaScript board (a shell, a script
and the JSON that the script fetches), each until the page is still, as the crawler does it. Every
post must be read whole. The simulated web runs in the same process: its time counts against us.
Memory is the proportional set size (PSS) of Chromium's processes and its driver, as they are
started again it is a sawtooth; its trend is a line through all readings, and through the lowest
reading after each new start.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.kept import RESULTS
from embedding.crawl.browser import BrowserPool
from embedding.crawl.chromium_process import ChromiumProcess
from embedding.crawl.config import CrawlConfig
from embedding.crawl.fetcher import Fetcher, Request
from embedding.kernel.errors import FetchError
from embedding.sources.base import Found
from embedding.sources.config import SourceConfig
from yeoron_bench.results import facts, hardware, keep
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.testing import AT_ONCE, running

_EVERY = 2.0
_POST = {"items": "article.post", "id": "@data-id", "link": "h2 a", "text": "div.body"}
_ANSWER = {"answers": "/api/posts/", "items": "", "id": "id", "link": "url", "text": "body"}


@dataclass(frozen=True)
class Setting:
    pages: int = 400
    contexts: int = 2
    recycle_pages: int = CrawlConfig().recycle_pages
    answers: bool = False
    """Read the posts from the page's own JSON instead of from the shown page."""


@dataclass
class Tally:
    shown: int = 0
    wrong: int = 0
    failed: list[str] = field(default_factory=list)
    memory: list[tuple[float, int, int, float, float]] = field(default_factory=list)
    """Seconds, pages, browsers started, MB of the browser's tree, MB of this process."""


def _posts(base: str, wanted: int) -> list[dict[str, str]]:
    posts: list[dict[str, str]] = []
    cursor: str | None = ""
    while cursor is not None and len(posts) < wanted:
        parameters = {"before": cursor, "limit": "100"}
        answer = httpx.get(f"{base}/board/api/posts", params=parameters, timeout=60).json()
        posts += answer["posts"]
        cursor = answer["next"]
    return posts[:wanted]


def _never(_seen: Sequence[Found]) -> bool:
    """Never enough: each page is read until it is still."""
    return False


async def _render_all(
    pool: BrowserPool, base: str, posts: Iterator[dict[str, str]], setting: Setting, tally: Tally
) -> None:
    for post in posts:
        url = base + post["url"]
        more = dict(_ANSWER if setting.answers else _POST)
        source = SourceConfig(name="board", kind="rendered", url=url, **more)
        try:
            page = await pool.render(source, Request(url), _never)
        except FetchError as error:
            tally.failed.append(error.reason)
            continue
        tally.shown += 1
        text = " ".join(page[0].text.split()) if len(page) == 1 else ""
        tally.wrong += text != " ".join(post["body"].split())


def _pss(browser: ChromiumProcess) -> float:
    total = 0
    for process in browser.processes():
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total / 1e6


async def _sample(pool: BrowserPool, tally: Tally, began: float) -> None:
    own = psutil.Process()
    while True:
        browser = pool.browser
        if browser is not None and tally.shown:
            used = await asyncio.to_thread(_pss, browser)
            row = (time.monotonic() - began, tally.shown, pool.started, used)
            tally.memory.append((*row, own.memory_info().rss / 1e6))
        await asyncio.sleep(_EVERY)


async def _run(base: str, setting: Setting) -> tuple[Tally, float, int]:
    config = CrawlConfig(
        allow_private_hosts=(base.removeprefix("http://"),),
        rate=1e6,
        per_host=32,
        render_contexts=setting.contexts,
    ).model_copy(update={"recycle_pages": setting.recycle_pages})
    fetcher = Fetcher(config)
    pool = BrowserPool(config, fetcher)
    posts = iter(await asyncio.to_thread(_posts, base, setting.pages))
    tally, began = Tally(), time.monotonic()
    sampling = asyncio.create_task(_sample(pool, tally, began))
    workers = (_render_all(pool, base, posts, setting, tally) for _ in range(setting.contexts))
    await asyncio.gather(*workers)
    took = time.monotonic() - began
    sampling.cancel()
    await asyncio.wait({sampling})
    started = pool.started
    await pool.close()
    await fetcher.close()
    return tally, took, started


def _slope(rows: Sequence[tuple[float, float]]) -> float | None:
    """MB for each 1,000 pages."""
    if len({pages for pages, _ in rows}) < 3:
        return None
    return 1000 * statistics.linear_regression(*zip(*rows, strict=True)).slope


def _memory(tally: Tally) -> dict[str, Any]:
    tree = [(pages, used) for _, pages, _, used, _ in tally.memory]
    lowest: dict[int, tuple[float, float]] = {}
    for _, pages, started, used, _ in tally.memory:
        if started not in lowest or used < lowest[started][1]:
            lowest[started] = (pages, used)
    half = len(tree) // 2
    sizes = [used for _, used in tree]
    return {
        "tree_mb": {
            "median": statistics.median(sizes),
            "largest": max(sizes),
            "first_half_median": statistics.median(sizes[:half] or sizes),
            "second_half_median": statistics.median(sizes[half:]),
            "slope_per_1000_pages": _slope(tree),
            "lowest_of_each_browser_slope_per_1000_pages": _slope(list(lowest.values())),
        },
        "crawler_mb": {
            "first": tally.memory[0][4],
            "last": tally.memory[-1][4],
            "slope_per_1000_pages": _slope([(p, own) for _, p, _, _, own in tally.memory]),
        },
        "readings": [[round(value, 1) for value in row] for row in tally.memory],
    }


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def bench_render(setting: Setting, *, results: Path = RESULTS) -> dict[str, Any]:
    """One run and a dated result."""
    web = SimwebConfig(speed=AT_ONCE, autostart=True, crawl_delay=0, shares={"board": 1.0})
    with running(web) as base:
        before, machine = _processor_seconds(), hardware()
        tally, took, started = asyncio.run(_run(base, setting))
        used = _processor_seconds() - before
    report = {
        **facts("render", ("playwright", "httpx"), machine),
        "setting": asdict(setting),
        "pages": {
            "asked": setting.pages,
            "shown": tally.shown,
            "wrong": tally.wrong,
            "failed": {name: tally.failed.count(name) for name in set(tally.failed)},
            "lost": setting.pages - tally.shown + tally.wrong,
        },
        "seconds": took,
        "pages_per_minute": 60 * tally.shown / took,
        "processor_seconds_per_page": used / max(1, tally.shown),
        "browsers_started": started,
        "memory": _memory(tally),
    }
    keep(report, results=results)
    short = {**report, "memory": {k: v for k, v in report["memory"].items() if k != "readings"}}
    print(json.dumps(short, indent=1))
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=Setting.pages)
    parser.add_argument("--contexts", type=int, default=Setting.contexts)
    parser.add_argument("--recycle-pages", type=int, default=Setting.recycle_pages)
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    setting = Setting(given.pages, given.contexts, given.recycle_pages, given.answers)
    bench_render(setting, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
