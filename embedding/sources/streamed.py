"""Streams that are no web pages: what Kafka, Redis and files that are played back share, and Redis.

A record is a JSON object with a text, its date, title and author, and has a place in its stream.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from embedding.kernel.errors import FetchError
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
