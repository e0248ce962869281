"""Redis streams (Redis 5 and later): each entry is a text with its date, source and author."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from embedding.kernel.errors import FetchError
from embedding.sources.base import ListedItem, Pseudonyms, Web
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import SOURCES, SourceTraits
from embedding.sources.streamed import (
    STREAM_FIELDS,
    STREAM_SETTINGS,
    StreamedRecords,
    decoded_fields,
    need_stream,
)

_TIMEOUT_S = 20.0


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
class RedisAdapter:
    """Reads a stream from its beginning, then what is new.

    Nothing is changed in it. What was read before a restart is read again, and known by its ID.
    """

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        self.source = source
        self.complete = False
        self._records = StreamedRecords(source, pseudonyms)
        self._last = b"0-0"

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        del web
        self.complete = False
        most = self.source.max_items
        entries = await self._read(most)
        for place, fields in entries:
            milliseconds = int(place.partition(b"-")[0])
            arrived = datetime.fromtimestamp(milliseconds / 1000, UTC)
            item = self._records.item(place.decode(), decoded_fields(fields), arrived)
            self._last = place
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
        place = f"{source.url}: stream {source.stream!r}"
        try:
            answer: Any = await client.xread({str(source.stream): self._last}, count=most)
        except (exceptions.AuthenticationError, exceptions.NoPermissionError) as error:
            raise FetchError("login", f"{place}: a login is needed; set `password`.") from error
        except (exceptions.TimeoutError, TimeoutError) as error:
            raise FetchError("timeout", f"{place}: no answer in time.", retry_after=0) from error
        except (exceptions.ConnectionError, OSError) as error:
            raise FetchError("connect", f"{place}: no connection.", retry_after=0) from error
        except exceptions.ResponseError as error:
            if str(error).startswith("NOAUTH"):
                raise FetchError("login", f"{place}: a login is needed; set `password`.") from error
            raise FetchError("parse", f"{place}: no stream ({error}).") from error
        finally:
            await client.aclose()
        pairs = answer.values() if isinstance(answer, dict) else (each[1] for each in answer)
        found: list[Any] = [entry for several in pairs for entry in several]
        if found and isinstance(found[0], list):
            found = [entry for several in found for entry in several]
        return found
