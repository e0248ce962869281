"""A broker on loopback that speaks Kafka's protocol, for as long as a test lasts.

It is the mock cluster that librdkafka has built in for tests: it listens on a real port, and any
client can produce to it and fetch from it. It knows no logins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Broker:
    """url: kafka://127.0.0.1:PORT."""

    url: str
    _producer: Any

    def add(self, topic: str, values: Sequence[bytes]) -> None:
        """Messages at the end of a topic, which is made by the first of them."""
        for value in values:
            self._producer.produce(topic, value)
        left = self._producer.flush(30)
        assert left == 0, f"{left} messages were not taken"


@contextmanager
def kafka_broker() -> Iterator[Broker]:
    """A broker with topics of four partitions; it ends with the block."""
    kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    quiet = {"log_level": 0, "bootstrap.servers": "mock", "test.mock.num.brokers": 1}
    producer = kafka.Producer(quiet)
    (one,) = producer.list_topics(timeout=30).brokers.values()
    broker = Broker(f"kafka://{one.host}:{one.port}", producer)
    del producer
    try:
        yield broker
    finally:
        broker._producer = None
