"""A topic of Kafka in memory, for tests that need no broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embedding.sources.kafka import TopicMessage


class MemoryTopic:
    """A topic of one partition in memory; `sources/test_streams.py` compares it with a broker."""

    def __init__(self, values: list[bytes]) -> None:
        self.values = values

    async def read(
        self, offsets: Mapping[int, int], most: int
    ) -> tuple[Sequence[TopicMessage], bool]:
        first = offsets.get(0, 0)
        found = enumerate(self.values[first : first + most], first)
        messages = [TopicMessage(0, at, 1.58e9 + at, value) for at, value in found]
        return messages, first + len(messages) >= len(self.values)
