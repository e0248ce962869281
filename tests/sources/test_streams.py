"""Streams: what is new since the last poll, what a restart reads again, which failures are said."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from embedding.kernel.errors import ConfigError, FetchError
from embedding.sources.base import Adapter, Inline, Pseudonyms
from embedding.sources.config import SourceConfig, load_sources
from embedding.sources.kafka import BrokerTopic, KafkaAdapter, TopicMessage
from embedding.sources.kinds import make_adapter
from kafkabroker import kafka_broker
from memorytopic import MemoryTopic
from redisserver import redis_server


async def poll(adapter: Any, web: Any) -> list[str]:
    found = [item async for item in adapter.poll(web)]
    assert all(isinstance(item, Inline) for item in found)
    return [item.text for item in found]


def redis(url: str, **more: Any) -> Adapter:
    source = SourceConfig(name="s", kind="redis", url=url, stream="posts", **more)
    return make_adapter(source, Pseudonyms(b"key"))


def test_a_record_whose_time_cannot_be_read_has_none_and_not_that_of_its_arrival() -> None:
    source = SourceConfig(name="s", kind="redis", url="redis://h", stream="posts", timezone="UTC")
    records = make_adapter(source, Pseudonyms(b"key"))
    arrived = datetime(2024, 3, 5, 3, tzinfo=UTC)
    times = {"2024-03-01": datetime(2024, 3, 1, tzinfo=UTC), "": arrived, "언젠가": None}
    times["2h ago"] = datetime(2024, 3, 5, 1, tzinfo=UTC)
    for stated, expected in times.items():
        item = records.item("1", {"text": "글", "date": stated}, arrived)
        assert item is not None
        assert item.published_at == expected


async def test_a_redis_stream_goes_on_where_the_last_poll_ended(web: Any, tmp_path: Path) -> None:
    from redis import Redis

    with redis_server(tmp_path) as url, Redis.from_url(url) as client:
        adapter = redis(url, max_items=2)
        assert await poll(adapter, web) == []
        assert adapter.complete
        for at in range(3):
            client.xadd("posts", {"text": f"글 {at}"})
        client.xadd("posts", {"data": json.dumps({"text": "안의 글", "date": "2020-02-03"})})
        client.xadd("posts", {"what": "no text"})
        assert await poll(adapter, web) == ["글 0", "글 1"]
        assert not adapter.complete
        assert await poll(adapter, web) == ["글 2", "안의 글"]
        assert await poll(adapter, web) == []
        assert adapter.complete
        # After a restart all is read again: what was learnt is known by its key.
        assert len(await poll(redis(url), web)) == 4
        assert client.xlen("posts") == 5
        client.set("plain", "no stream")
        other = SourceConfig(name="s", kind="redis", url=url, stream="plain")
        with pytest.raises(FetchError, match="no stream") as caught:
            await poll(make_adapter(other, Pseudonyms(b"key")), web)
        assert caught.value.reason == "parse"
    with pytest.raises(FetchError, match="no connection") as caught:
        await poll(adapter, web)
    assert caught.value.reason == "connect"


async def test_a_redis_server_that_wants_a_password(web: Any, tmp_path: Path) -> None:
    with redis_server(tmp_path, "hush") as url:
        for more in ({}, {"password": "wrong"}):
            with pytest.raises(FetchError, match="a login is needed; set `password`") as caught:
                await poll(redis(url, **more), web)
            assert caught.value.reason == "login"
            assert "hush" not in str(caught.value)
        assert await poll(redis(url, password="hush"), web) == []


async def test_a_topic_goes_on_where_the_last_poll_ended(web: Any) -> None:
    class Topic:
        def __init__(self) -> None:
            self.asked: list[dict[int, int]] = []

        async def read(self, offsets: Any, most: int) -> Any:
            self.asked.append(dict(offsets))
            first = offsets.get(1, 7)
            values = [b'{"text": "\xea\xb8\x80"}', b"no JSON"]
            return [
                TopicMessage(1, first + at, 1.6e9, each) for at, each in enumerate(values)
            ], True

    source = SourceConfig(name="s", kind="kafka", url="kafka://broker:9092", stream="posts")
    topic = Topic()
    adapter = KafkaAdapter(source, Pseudonyms(b"key"), topic)
    assert await poll(adapter, web) == ["글"]
    assert await poll(adapter, web) == ["글"]
    assert topic.asked == [{}, {1: 9}]


async def test_a_broker_is_read_from_its_first_message_and_then_what_is_new(web: Any) -> None:
    def values(*numbers: int) -> list[bytes]:
        return [json.dumps({"text": f"글 {at}", "author": "홍길동"}).encode() for at in numbers]

    with kafka_broker() as broker:
        broker.add("posts", [*values(*range(40)), b"no JSON", b"", b'{"what": "no text"}'])
        broker.add("others", values(99))
        source = SourceConfig(name="s", kind="kafka", url=broker.url, stream="posts", max_items=25)
        adapter = make_adapter(source, Pseudonyms(b"key"))
        found = await poll(adapter, web)
        assert not adapter.complete
        while not adapter.complete:
            found += await poll(adapter, web)
        assert sorted(found) == sorted(f"글 {at}" for at in range(40))
        assert await poll(adapter, web) == []
        broker.add("posts", values(40, 41))
        assert sorted(await poll(adapter, web)) == ["글 40", "글 41"]
        # After a restart all is read again: what was learnt is known by its key.
        again, keys = make_adapter(source, Pseudonyms(b"key")), set()
        while not again.complete:
            keys |= {item.key async for item in again.poll(web)}
        assert len(keys) == 42
        url = broker.url
    with pytest.raises(FetchError, match="no connection") as caught:
        await poll(make_adapter(source.model_copy(update={"url": url}), Pseudonyms(b"key")), web)
    assert caught.value.reason == "connect"


async def test_a_broker_and_the_topic_in_memory_answer_alike() -> None:
    values = [f'{{"text": "글 {at}"}}'.encode() for at in range(9)]

    async def all_of(topic: Any, most: int) -> tuple[list[bytes], list[bool]]:
        offsets: dict[int, int] = {}
        found, ends = [], [False]
        while not ends[-1]:
            messages, end = await topic.read(offsets, most)
            assert len(messages) <= most
            for one in messages:
                assert one.offset == offsets.get(one.partition, 0)
                offsets[one.partition] = one.offset + 1
                found.append(one.value)
            ends.append(end)
        return sorted(found), ends

    with kafka_broker() as broker:
        broker.add("posts", values)
        for most in (4, 9, 50):
            answers = [
                await all_of(topic, most)
                for topic in (BrokerTopic(broker.url, "posts"), MemoryTopic(values))
            ]
            assert [found for found, _ in answers] == [sorted(values)] * 2


async def test_a_broker_that_is_not_there(web: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        topic = BrokerTopic(f"kafka://127.0.0.1:{free.getsockname()[1]}", "posts")
        with pytest.raises(FetchError, match="topic 'posts': no connection") as caught:
            await topic.read({}, 10)
    assert caught.value.reason == "connect"


async def test_a_timeline_is_read_until_all_is_known(web: Any) -> None:
    def posts(*numbers: int, **more: str) -> str:
        return json.dumps(
            [
                {
                    "id": str(at),
                    "url": f"https://m.example/{at}",
                    "created_at": "2020-02-03T00:00:00Z",
                    "content": f"<p>글 {at}<br>둘째 줄 &amp; 끝</p><script>x()</script>",
                    **more,
                }
                for at in numbers
            ]
        )

    base = "https://m.example/api/v1/timelines/public?limit=40"
    web.pages = {base: posts(9, 8), f"{base}&max_id=8": posts(7, 6), f"{base}&max_id=6": "[]"}
    source = SourceConfig(name="m", kind="mastodon", url="https://m.example", language="ko")
    adapter = make_adapter(source, Pseudonyms(b"key"))
    assert len(await poll(adapter, web)) == 4
    assert adapter.complete
    web.known = {f"https://m.example/{at}" for at in (9, 8)}
    assert await poll(adapter, web) == ["글 9\n둘째 줄 & 끝", "글 8\n둘째 줄 & 끝"]
    web.pages |= {base: posts(11, language="ja"), f"{base}&max_id=11": posts(10, language="ko-KR")}
    web.pages[f"{base}&max_id=10"] = posts(9)
    assert await poll(adapter, web) == ["글 10\n둘째 줄 & 끝", "글 9\n둘째 줄 & 끝"]
    web.pages[base] = '{"error": "This method requires an authenticated user"}'
    with pytest.raises(FetchError, match="no list of posts"):
        await poll(adapter, web)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('kind = "redis"\nurl = "redis://a:6379/0"', "needs `stream`"),
        ('kind = "redis"\nurl = "https://a.kr"\nstream = "x"', "not a redis or rediss address"),
        ('kind = "kafka"\nurl = "redis://a"\nstream = "x"', "not a kafka address"),
        ('kind = "feed"\nurl = "redis://a"', "not an http or https address"),
        ('kind = "redis"\nurl = "redis://u:p@a"\nstream = "x"', "take them out"),
    ],
)
def test_settings_that_cannot_work(tmp_path: Path, table: str, sentence: str) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(f'[[source]]\nname = "s"\n{table}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=sentence):
        load_sources(path)


@dataclass(frozen=True)
class Partition:
    partition: int = 0


class StandIn:
    """A consumer of aiokafka over messages of one partition, whose last offset may hold none."""

    def __init__(self, messages: list[SimpleNamespace], end: int) -> None:
        self.place, self.messages, self.end, self.at = Partition(), messages, end, 0
        self.asked = 0

    def assignment(self) -> list[Partition]:
        return [self.place]

    async def end_offsets(self, _: object) -> dict[object, int]:
        return {self.place: self.end}

    async def beginning_offsets(self, _: object) -> dict[object, int]:
        return {self.place: 0}

    def seek(self, _: object, offset: int) -> None:
        self.at = offset

    async def position(self, _: object) -> int:
        return self.at

    async def getmany(self, timeout_ms: int, max_records: int) -> dict[object, list[Any]]:
        self.asked += 1
        found = [one for one in self.messages if one.offset >= self.at][:max_records]
        self.at = found[-1].offset + 1 if found else self.end
        return {self.place: found} if found else {}


async def read_topic(
    values: list[bytes | None], end: int, offset: int = 0, stamp: float | None = 1.7e12
) -> tuple[list[int], bool, int]:
    messages = [
        SimpleNamespace(offset=at, timestamp=stamp, value=value) for at, value in enumerate(values)
    ]
    consumer = StandIn(messages, end)
    topic = BrokerTopic("kafka://h:9092", "t")
    found, complete = await topic._messages(consumer, {0: offset} if offset else {}, 500)
    return [one.offset for one in found], complete, consumer.asked


async def test_what_a_topic_holds_beside_messages() -> None:
    text = b'{"text": "a"}'
    control = await read_topic([text] * 5, 6)
    assert control == ([0, 1, 2, 3, 4], True, 2)
    tombstone = await read_topic([text, None, text], 3)
    assert tombstone[:2] == ([0, 2], True)
    made_again = await read_topic([text] * 3, 3, offset=100)
    assert made_again[:2] == ([0, 1, 2], True)
    undated = await read_topic([text], 1, stamp=None)
    assert undated[:2] == ([0], True)


async def test_messages_of_a_topic_that_was_made_again_have_other_keys(web: Any) -> None:
    source = SourceConfig(name="k", kind="kafka", url="kafka://h", stream="t")
    topic = MemoryTopic([b'{"text": "a"}', b'{"text": "b"}'])
    adapter = KafkaAdapter(source, Pseudonyms(b"key"), topic)
    first = [item.key async for item in adapter.poll(web)]
    adapter._topic = MemoryTopic([b'{"text": "c"}'])

    async def from_the_beginning(*_: object) -> object:
        return await MemoryTopic([b'{"text": "c"}']).read({}, 9)

    adapter._topic.read = from_the_beginning  # type: ignore[method-assign]
    second = [item.key async for item in adapter.poll(web)]
    assert len(first) == 2
    assert len(second) == 1
    assert not {*first} & {*second}
