"""Headlines of original documents: fetched again when a reader asks, shown at once where kept."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from embedding.crawl.config import CrawlConfig
from embedding.kernel.errors import FetchError
from embedding.snapshots.evidence import Evidence
from embedding.web.tokens import opened

if TYPE_CHECKING:
    from embedding.crawl.fetcher import Fetcher


HeadlineState = Literal["read", "gone", "login", "refused", "later", "none"]
TURN_PATIENCE_S = 15.0
"""Seconds to wait for the host's next turn."""
_HEAD = 400_000
"""Characters of a page in which its headline is looked for."""
_GONE = (404, 410, 451)
_LOGIN = (401, 402, 403, 407)
_LOGIN_PATH = re.compile(r"/(?:log-?in|sign-?in|auth|member/login|nidlogin)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Headline:
    """A headline, or why there is none.

    state  `read`: `text` is it; `gone`: the page is not there any more; `login`: the site asks for
           a login; `refused`: robots.txt or the address guard forbids it; `later`: the site does
           not answer now; `none`: the page has no headline
    """

    state: HeadlineState
    text: str = ""


_MOST_BYTES = 2 * 1024 * 1024


class Headlines:
    """Fetches headlines by the crawler's client, made with the first one.

    store  where they are kept; None: nowhere
    """

    def __init__(self, crawl: CrawlConfig, store: HeadlineStore | None) -> None:
        limit = min(crawl.max_bytes, _MOST_BYTES)
        self._config = crawl.model_copy(update={"max_bytes": limit})
        self._store = store
        self._fetcher: Fetcher | None = None

    @property
    def keeps(self) -> bool:
        return self._store is not None

    def known(self, urls: Sequence[str]) -> dict[str, str]:
        """Headlines that are kept of these pages."""
        return {} if self._store is None else self._store.find(urls)

    async def read(self, document: Evidence) -> Headline:
        """The headline of a page as it is now. All calls come from one event loop."""
        from embedding.crawl.fetcher import Fetcher

        self._fetcher = self._fetcher or Fetcher(self._config)
        headline = await _fetched(self._fetcher, document.url)
        if self._store is not None and headline.state == "read":
            await asyncio.to_thread(self._store.add, document.url, document.source, headline.text)
        return headline


async def _fetched(fetcher: Fetcher, url: str) -> Headline:
    from embedding.crawl.extract import headline_of  # trafilatura takes its time
    from embedding.crawl.fetcher import Request

    try:
        answer = await fetcher.fetch(Request(url, patience=TURN_PATIENCE_S))
        path = urlsplit(answer.url).path
        if path != urlsplit(url).path and _LOGIN_PATH.search(path):
            return Headline("login")
        text = await asyncio.to_thread(headline_of, answer.text()[:_HEAD])
    except FetchError as error:
        return Headline(_state(error))
    return Headline("read", text) if text else Headline("none")


def _state(error: FetchError) -> HeadlineState:
    if error.status in _GONE:
        return "gone"
    if error.status in _LOGIN:
        return "login"
    if error.reason in ("robots", "private_address", "port"):
        return "refused"
    if error.retry_after is not None or error.reason in ("host_busy", "timeout", "connect"):
        return "later"
    return "none"


_MOST = 500
"""Addresses that are looked up at once."""
_HEADLINES = """CREATE TABLE IF NOT EXISTS headlines
    (url TEXT PRIMARY KEY, source TEXT, headline TEXT, fetched REAL)"""


class HeadlineStore:
    """Headlines by address; the file is made with the first of them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, urls: Sequence[str]) -> dict[str, str]:
        """The headlines that are kept of these pages."""
        if not self.path.is_file() or not urls:
            return {}
        chosen = list(urls)[:_MOST]
        with self._open() as table:
            marks = ", ".join("?" * len(chosen))
            query = f"SELECT url, headline FROM headlines WHERE url IN ({marks})"  # noqa: S608 - marks
            return dict(table.execute(query, chosen).fetchall())

    def add(self, url: str, source: str, headline: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as table:
            table.execute(
                "INSERT OR REPLACE INTO headlines VALUES (?, ?, ?, ?)",
                (url, source, headline, time.time()),
            )

    def erase(
        self,
        *,
        word: str | None = None,
        source: str | None = None,
        page: str | None = None,
        before: float | None = None,
        dry: bool = False,
    ) -> int:
        """Remove headlines that hold a word, of a source, of a page, or fetched before a time (Unix
        seconds); how many there are.

        dry  only count
        """
        if not self.path.is_file():
            return 0
        wanted = {
            "instr(headline, ?) > 0": word,
            "source = ?": source,
            "url = ?": page,
            "fetched < ?": before,
        }
        chosen = {clause: value for clause, value in wanted.items() if value is not None}
        where = " OR ".join(chosen) or "0"
        with self._open() as table:
            count = f"SELECT count(*) FROM headlines WHERE {where}"  # noqa: S608 - clauses from above
            n = int(table.execute(count, [*chosen.values()]).fetchone()[0])
            if not dry:
                table.execute(f"DELETE FROM headlines WHERE {where}", [*chosen.values()])  # noqa: S608
        return n

    def _open(self) -> AbstractContextManager[sqlite3.Connection]:
        return opened(self.path, _HEADLINES, "headlines")
