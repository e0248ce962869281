"""A dated JSONL file played back: each line appears when the clock reaches its time."""

from __future__ import annotations

import asyncio
import gzip
import lzma
from collections.abc import AsyncIterator, Iterator
from typing import IO, Any

from embedding.kernel.errors import ConfigError, FetchError
from embedding.sources.base import Inline, ListedItem, Pseudonyms, Web
from embedding.sources.config import SourceConfig
from embedding.sources.dotted import dotted_text
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, SourceTraits
from embedding.sources.streamed import StreamAdapter, decoded_record


@SOURCES.register(
    "replayed",
    SourceTraits(
        settings=(*COMMON_SETTINGS, "path", "id", "title", "time", "text", "author"),
        defaults={"text": "text", "time": "date", "title": "title"},
        noun="a file that is played back",
    ),
)
class ReplayedAdapter(StreamAdapter):
    """Plays a file sorted by time; without a replay clock all of the past appears at once."""

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        if source.path is None:
            raise ConfigError(f"source {source.name!r}: a replayed source needs `path`.")
        super().__init__(source, pseudonyms)
        self._path = source.path
        self._lines: Iterator[tuple[int, str]] | None = None
        self._file: IO[str] | None = None
        self._waiting: Inline | None = None

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        """The lines whose time has come since the last poll, at most `max_items`.

        All from the first on, where some that were listed before wait to be listed again.
        """
        if self.complete and not web.all_known(()):
            self.close()
            self._lines = self._waiting = None
        self.complete = False
        left = self.source.max_items
        while left > 0:
            if self._waiting is None:
                self._waiting = await asyncio.to_thread(self._next)
            if self._waiting is None:
                self.complete = True
                return
            item, when = self._waiting, self._waiting.published_at
            if when is not None and when.timestamp() > web.clock().event_now():
                self.complete = True
                return
            self._waiting = None
            left -= 1
            yield item

    def _next(self) -> Inline | None:
        """The next usable line, or None at the end of the file."""
        try:
            if self._lines is None:
                opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(self._path.suffix, open)
                self._file = opener(self._path, "rt", encoding="utf-8")
                self._lines = enumerate(self._file, start=1)
            for number, line in self._lines:
                record = decoded_record(line)
                offset = dotted_text(record, self.source.id) or str(number)
                if (item := self.item(offset, record, None)) is not None:
                    return item
        except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
            raise FetchError("parse", f"{self._path}: cannot be read ({error}).") from error
        self.close()
        return None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._lines = iter(())
