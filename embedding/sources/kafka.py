"""Kafka topics: each message is a JSON object with a text, its date, source and author."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from embedding.kernel.errors import FetchError
from embedding.sources.base import ListedItem, Pseudonyms, Web
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import SOURCES, SourceTraits
from embedding.sources.streamed import (
    STREAM_FIELDS,
    STREAM_SETTINGS,
    StreamAdapter,
    decoded_record,
    need_stream,
)

_PORT = 9092
_TIMEOUT_S = 20.0
_WAIT_MS = 500


@dataclass(frozen=True)
class TopicMessage:
    """One message; `arrived` in Unix seconds, 0 where the broker does not know it."""

    partition: int
    offset: int
    arrived: float
    value: bytes


class BrokerTopic:
    """A topic of a broker, read by nobody's group: nothing is kept there of what was read.

    `tests/sources/test_streams.py` says what whoever stands in for it must do.
    """

    def __init__(self, url: str, topic: str) -> None:
        parts = urlsplit(url)
        self._server = f"{parts.hostname}:{parts.port or _PORT}"
        self._topic = topic
        self._place = f"{url}: topic {topic!r}"

    async def read(
        self, offsets: Mapping[int, int], most: int
    ) -> tuple[Sequence[TopicMessage], bool]:
        """Messages from an offset of each partition on (its beginning where none is named), at
        most `most`; and whether these are all there are now. Raises FetchError.
        """
        from aiokafka import AIOKafkaConsumer, errors

        consumer = AIOKafkaConsumer(
            self._topic,
            bootstrap_servers=self._server,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=int(_TIMEOUT_S * 1000),
        )
        try:
            await consumer.start()
            return await self._messages(consumer, offsets, most)
        except (
            errors.AuthenticationFailedError,
            errors.TopicAuthorizationFailedError,
            errors.SaslAuthenticationFailed,
        ) as error:
            raise FetchError("login", f"{self._place}: a login is needed.") from error
        except (errors.KafkaConnectionError, errors.KafkaTimeoutError, OSError) as error:
            raise FetchError("connect", f"{self._place}: no connection.", retry_after=0) from error
        except errors.KafkaError as error:
            name = type(error).__name__
            raise FetchError("parse", f"{self._place}: cannot be read ({name}).") from error
        finally:
            await consumer.stop()

    async def _messages(
        self, consumer: Any, offsets: Mapping[int, int], most: int
    ) -> tuple[Sequence[TopicMessage], bool]:
        partitions = consumer.assignment()
        if not partitions:
            raise FetchError("parse", f"{self._place}: no such topic.")
        ends = await consumer.end_offsets(partitions)
        begins = await consumer.beginning_offsets(partitions)
        positions = {}
        for part in partitions:
            offset = offsets.get(part.partition, 0)
            # A topic that was made again ends before the offset that is remembered of the old one.
            positions[part] = max(0 if offset > ends[part] else offset, begins[part])
            consumer.seek(part, positions[part])
        messages: list[TopicMessage] = []
        deadline = time.monotonic() + _TIMEOUT_S
        while len(messages) < most and any(positions[part] < ends[part] for part in partitions):
            answer = await consumer.getmany(timeout_ms=_WAIT_MS, max_records=most - len(messages))
            for part, records in answer.items():
                messages += [
                    TopicMessage(
                        part.partition,
                        record.offset,
                        max(record.timestamp or 0, 0) / 1000,
                        record.value,
                    )
                    for record in records
                    if record.value is not None
                ]
            for part in partitions:
                # Behind a control record of a transaction there is a position and no message.
                positions[part] = await consumer.position(part)
            if time.monotonic() > deadline:
                break
        return messages, all(positions[part] >= ends[part] for part in partitions)


@SOURCES.register(
    "kafka",
    SourceTraits(
        settings=tuple(name for name in STREAM_SETTINGS if name != "password"),
        defaults=STREAM_FIELDS,
        check=need_stream,
        noun="a Kafka topic",
        schemes=("kafka",),
    ),
)
class KafkaAdapter(StreamAdapter):
    """Reads a topic from its beginning, then what is new.

    What was read before a restart is read again, and known by partition and offset.
    """

    def __init__(
        self, source: SourceConfig, pseudonyms: Pseudonyms, topic: BrokerTopic | None = None
    ) -> None:
        super().__init__(source, pseudonyms)
        self._topic = topic or BrokerTopic(source.url, str(source.stream))
        self._offsets: dict[int, int] = {}
        self._made_again: set[int] = set()

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        del web
        self.complete = False
        messages, complete = await self._topic.read(dict(self._offsets), self.source.max_items)
        for message in messages:
            if message.offset < self._offsets.get(message.partition, 0):
                self._made_again.add(message.partition)
            self._offsets[message.partition] = message.offset + 1
            arrived = datetime.fromtimestamp(message.arrived, UTC) if message.arrived else None
            offset = f"{message.partition}-{message.offset}"
            if message.partition in self._made_again:
                offset += f"-{message.arrived:.3f}"  # the same offset was another message before
            item = self.item(offset, decoded_record(message.value), arrived)
            if item is not None:
                yield item
        self.complete = complete
