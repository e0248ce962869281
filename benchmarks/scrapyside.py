"""The other side of `python -m benchmarks crawl`: a Scrapy spider that does the same work.

    python -m benchmarks scrapyside BASE DOCUMENTS

Sitemaps, then articles; robots.txt is obeyed, there is no delay, and as many requests are in
flight as Yeoron has. Extraction is trafilatura with the options that Yeoron gives it (its quickest
ones), duplicates are found by the same hash and the same MinHash window, personal data is masked
by the same expressions, and each document is analysed by one call of Kiwi. All of it happens in
the callback, as in spiders it does. Prints one line of JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.utils.sitemap import Sitemap

from embedding.crawl.config import CrawlConfig
from embedding.crawl.extract import extract
from embedding.crawl.shingles import NearDuplicates
from embedding.kernel.errors import FetchError
from embedding.text.config import TextConfig
from embedding.text.mask import mask
from embedding.text.morphemes import join, make_select
from embedding.text.normalise import normalise

SECTIONS = ("politics", "society", "life", "euckr")
AT_ONCE = 16


class Work:
    """What is done with each page."""

    def __init__(self) -> None:
        from kiwipiepy import Kiwi

        crawl, text = CrawlConfig(), TextConfig()
        self.near = NearDuplicates(crawl.near_threshold, crawl.near_window)
        self.least = crawl.dedupe_min_chars
        self.hashes: set[str] = set()
        self.text = text
        self.kiwi = Kiwi(num_workers=1, load_multi_dict=False)
        self.kiwi.tokenize("준비되었습니다.")
        self.select = make_select(text.keep_tags, text.min_length, text.max_length)
        self.documents = self.tokens = self.duplicates = self.failed = 0

    def do(self, page: str, url: str) -> None:
        try:
            page_read = extract(page, url, "UTC")
        except FetchError:
            self.failed += 1
            return
        if len(page_read.text) >= self.least:
            if page_read.digest in self.hashes or self.near.seen(url, page_read.signature):
                self.duplicates += 1
                return
            self.hashes.add(page_read.digest)
        clean = normalise(
            f"{page_read.title}\n{page_read.text}",
            run_length=self.text.run_length,
            emoji=self.text.emoji,
        )
        tokens = self.kiwi.tokenize(mask(clean).text)
        self.tokens += sum(self.select(form, tag) is not None for form, tag, _ in join(tokens))
        self.documents += 1


class Articles(scrapy.Spider):  # type: ignore[misc]
    """Reads the sitemaps of the simulated news site and then its articles."""

    name = "articles"

    def __init__(self, base: str, documents: int, work: Work) -> None:
        super().__init__()
        self.base, self.most, self.work = base, documents, work
        self.began = self.ended = self.used = 0.0

    async def start(self) -> AsyncIterator[Any]:
        self.began, self.used = time.monotonic(), time.process_time()
        for section in SECTIONS:
            yield scrapy.Request(f"{self.base}/news/{section}/sitemap.xml", self.sitemap)

    def sitemap(self, response: Any) -> Any:
        for entry in Sitemap(response.body):
            yield scrapy.Request(entry["loc"], self.article)

    def article(self, response: Any) -> None:
        if self.ended:
            return
        self.work.do(response.text, response.url)
        if self.work.documents >= self.most:
            self.ended = time.monotonic()
            self.used = time.process_time() - self.used
            raise scrapy.exceptions.CloseSpider("enough")


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    base, documents = given[0], int(given[1])
    logging.disable(logging.CRITICAL)
    work = Work()
    process = CrawlerProcess(
        {
            "ROBOTSTXT_OBEY": True,
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS": AT_ONCE,
            "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE,
            "AUTOTHROTTLE_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_ENABLED": False,
            "COOKIES_ENABLED": False,
        },
        install_root_handler=False,
    )
    crawler = process.create_crawler(Articles)
    process.crawl(crawler, base=base, documents=documents, work=work)
    process.start()
    spider = crawler.spider
    seconds = (spider.ended or time.monotonic()) - spider.began
    print(
        json.dumps(
            {
                "documents": work.documents,
                "tokens": work.tokens,
                "duplicates": work.duplicates,
                "failed": work.failed,
                "seconds": round(seconds, 2),
                "processor_seconds": round(spider.used, 2),
                "documents_per_minute": round(60 * work.documents / seconds, 1),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
