"""Streams that are no web pages: what all of them share, Redis, and files that are played back.

A record is a JSON object with a text, its date, title and author, and has a place in its stream.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import lzma
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any

from embedding.kernel.errors import ConfigError, FetchError
from embedding.sources.base import Inline, ListedItem, Pseudonyms, SourceAdapter, Web
from embedding.sources.config import SourceConfig
from embedding.sources.dotted import dotted, dotted_text
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, SourceTraits
from embedding.sources.markup import plain_text
from embedding.sources.times import parse_time

STREAM_SETTINGS = (*COMMON_SETTINGS, "url", "stream", "password", "title", "time", "text", "author")
STREAM_FIELDS = {"text": "text", "time": "date", "title": "title", "author": "author"}
_TIMEOUT_S = 20.0


def need_stream(source: SourceConfig) -> None:
    """ValueError where `stream` is missing."""
    if not source.stream:
        raise ValueError(f"a {source.kind} source needs `stream`, the name of what is read")


class StreamAdapter(SourceAdapter):
    """Makes items of the records of one stream."""

    def item(self, offset: str, record: Any, arrived: datetime | None) -> Inline | None:
        """A record; `offset` is its own in the stream, `arrived` counts where it states no time."""
        source = self.source
        text = plain_text(dotted_text(record, source.text))
        if not text:
            return None
        stated = dotted(record, source.time)
        return self.inline(
            f"{source.kind}://{source.name}/{offset}",
            text,
            parse_time(stated, source.timezone, arrived) if stated else arrived,
            dotted_text(record, source.title),
            dotted_text(record, source.author),
        )


def decoded_record(value: bytes | str) -> Any:
    """A value that is JSON; None where it is none."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def decoded_fields(fields: Mapping[bytes, bytes]) -> Any:
    """Named values; one alone may be an object in JSON with all of them in it."""
    if len(fields) == 1:
        record = decoded_record(next(iter(fields.values())))
        if isinstance(record, dict):
            return record
    return {
        name.decode(errors="replace"): value.decode(errors="replace")
        for name, value in fields.items()
    }


@SOURCES.register(
    "redis",
    SourceTraits(
        settings=STREAM_SETTINGS,
        defaults=STREAM_FIELDS,
        check=need_stream,
        noun="a Redis stream",
        schemes=("redis", "rediss"),
    ),
)
class RedisAdapter(StreamAdapter):
    """Reads a stream (Redis 5 and later) from its beginning, then what is new.

    Nothing is changed in it. What was read before a restart is read again, and known by its ID.
    """

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        super().__init__(source, pseudonyms)
        self._last = b"0-0"

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        del web
        self.complete = False
        most = self.source.max_items
        entries = await self._read(most)
        for offset, fields in entries:
            milliseconds = int(offset.partition(b"-")[0])
            arrived = datetime.fromtimestamp(milliseconds / 1000, UTC)
            item = self.item(offset.decode(), decoded_fields(fields), arrived)
            self._last = offset
            if item is not None:
                yield item
        self.complete = len(entries) < most

    async def _read(self, most: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        from redis import asyncio as redis
        from redis import exceptions

        source = self.source
        client = redis.Redis.from_url(
            source.url,
            password=source.password.get_secret_value() if source.password else None,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
        )
        where = f"{source.url}: stream {source.stream!r}"
        try:
            answer: Any = await client.xread({str(source.stream): self._last}, count=most)
        except (exceptions.AuthenticationError, exceptions.NoPermissionError) as error:
            raise FetchError("login", f"{where}: a login is needed; set `password`.") from error
        except (exceptions.TimeoutError, TimeoutError) as error:
            raise FetchError("timeout", f"{where}: no answer in time.", retry_after=0) from error
        except (exceptions.ConnectionError, OSError) as error:
            raise FetchError("connect", f"{where}: no connection.", retry_after=0) from error
        except exceptions.ResponseError as error:
            if str(error).startswith("NOAUTH"):
                raise FetchError("login", f"{where}: a login is needed; set `password`.") from error
            raise FetchError("parse", f"{where}: no stream ({error}).") from error
        finally:
            await client.aclose()
        lists = answer.values() if isinstance(answer, dict) else (rows for _, rows in answer)
        entries: list[Any] = [entry for rows in lists for entry in rows]
        if entries and isinstance(entries[0], list):
            entries = [entry for rows in entries for entry in rows]
        return entries


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
