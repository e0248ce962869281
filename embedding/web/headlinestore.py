"""Headlines that were fetched, where `web.keep_headlines` says to keep them. Never any text.

One SQLite file: address of the page, source, headline, when it was fetched (Unix seconds).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_MOST = 500
"""Addresses that are looked up at once."""


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

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=10)
        try:
            with connection:
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS headlines "
                    "(url TEXT PRIMARY KEY, source TEXT, headline TEXT, fetched REAL)"
                )
                yield connection
        finally:
            connection.close()
