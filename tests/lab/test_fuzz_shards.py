"""Messages to a shard that neither a node nor its primary sends: refused, rows as they were."""

from __future__ import annotations

import hashlib
import logging

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rawgrpc import exchange, flight_data, parts
from threads import fleet, sharded

from embedding.exchange.codec import to_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.contributors import AdmissionRequest
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig
from generated import examples

DIM = 4
CALM = ExchangeConfig().model_copy(update={"request_timeout_s": 60})


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.fixture(scope="module")
def server():
    config = ServerConfig(min_count=1, shards=2, device="cpu", max_message_bytes=200_000)
    with sharded(config, dim=DIM) as running:
        channel = Channel(running.location, CALM)
        channel.open()
        hello = {
            "op": "hello",
            "version": PROTOCOL_VERSION,
            "node": "n",
            "config_digest": "",
            "clock": 0,
        }
        channel.request(Message(hello))
        words, counts = ["말", "글", "집", "길"], ints(1, 1, 1, 1)

        channel.request(to_message(AdmissionRequest(words, counts)))
        running.state.rows.links.catch_up(60)
        yield running
        channel.close()


def shard(server):
    return fleet(server).servers[0]


def picture(server) -> tuple[str, ...]:
    state = shard(server).state
    with state.lock:
        every = np.arange(2)
        rows = [state.tables.read(table, every).tobytes() for table in (Table.IN, Table.OUT)]
        log = (state.cursor.number, state.cursor.position, state.held.next_id)
    return (*(hashlib.sha256(each).hexdigest() for each in rows), repr(log))


@pytest.fixture(autouse=True)
def unharmed(server, caplog):
    before = picture(server)
    caplog.set_level(logging.WARNING)
    yield
    assert picture(server) == before
    assert [r for r in caplog.records if r.levelno >= logging.ERROR or r.exc_info] == []
    assert fleet(server).servers[1].state.closing is False


def hello(node: str = "fuzz", first: int = 1) -> Message:
    return Message({"op": "hello", "version": PROTOCOL_VERSION, "node": node, "first": first})


@pytest.fixture
def channel(server):
    opened = Channel(shard(server).location, CALM)
    opened.open()
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (hello(""), "name"),
        (hello("a\nb"), "name"),
        (hello("n" * 2_000), "name"),
        (hello(first=2**61), "first"),
        (hello(first=0), "first"),
        (Message({"op": "hello", "version": 1, "node": "x", "first": 1}), "speaks"),
        (
            Message({"op": "lead", "version": PROTOCOL_VERSION, "number": 1, "identity": ""}),
            "training",
        ),
        (
            Message({"op": "lead", "version": PROTOCOL_VERSION, "number": 1, "identity": "x"}),
            "training",
        ),
        (Message({"op": "log", "first": 0, "entries": []}), "must be `hello`"),
        (Message({"op": "push"}, {"x": np.zeros(100_000)}), "max_message_bytes"),
    ],
)
def test_a_wrong_greeting_is_refused(server, channel, message, reason):
    with pytest.raises(RefusedError, match=reason):
        channel.request(message)


@pytest.mark.parametrize(
    ("header", "arrays", "reason"),
    [
        ({"op": "pull", "at": [1]}, {}, "at"),
        ({"op": "pull", "at": "x"}, {}, "at"),
        ({"op": "pull"}, {}, "at"),
        ({"op": "pull", "at": [0, 0], "clock": 0, "ids": [["in", 1, "i4"]]}, {}, "types i8"),
        ({"op": "rows", "table": "in"}, {"ids": ints(0)}, "not known"),
        ({"op": "sums", "at": [1, 0]}, {"ids": ints(0), "offsets": ints(0, 1)}, "not known"),
        ({"op": "copied", "number": 1}, {"ids": ints(0)}, "not known"),
        ({"op": "log", "entries": [["copy"]], "first": 0}, {}, "not known"),
        ({"op": "nothing"}, {}, "not known"),
        ({"op": ["pull"]}, {}, "not known"),
    ],
)
def test_a_wrong_request_is_refused_and_the_stream_goes_on(server, channel, header, arrays, reason):
    channel.request(hello())
    with pytest.raises(RefusedError, match=reason):
        channel.request(Message(header, arrays))
    assert channel.request(Message({"op": "confirm"})).header["status"] == "ok"


def test_a_pull_that_asks_for_more_than_a_message_holds_is_refused(server, channel):
    channel.request(hello())
    state = shard(server).state
    at = [state.cursor.number, state.cursor.position]
    asked = PullRequest({Table.IN: np.zeros(20_000, dtype=np.int64)}, 0)
    with pytest.raises(RefusedError, match="max_message_bytes"):
        channel.request(to_message(asked, at=at))


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.dictionaries(
        st.sampled_from(["op", "at", "sequence", "clock", "tokens", "first", "parts", "entries"]),
        st.recursive(
            st.none() | st.integers(-2, 2**63) | st.floats(allow_nan=False) | st.text(max_size=3),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        min_size=1,
    )
)
def test_fuzzed_headers_are_answered(server, changes):
    _, header, metadata, body = parts(hello())
    push = Message(
        {"op": "push", "node": "fuzz", "sequence": 1, "clock": 0, "tokens": 0, "pairs": 0,
         "at": [1, 10**6], "deltas": [["in", [1, DIM, "f4"]]], **changes},
        {"in.i8": ints(1), "in.f4": np.zeros((1, DIM), "f4")},
    )  # fmt: skip
    schema, other, bad, tail = parts(push)
    sent = [
        flight_data(schema, first=True),
        flight_data(header, metadata, body),
        flight_data(other, bad, tail),
    ]
    answer = exchange(shard(server).location, sent)[-1]
    assert b'"failed"' not in answer
    assert b"Traceback" not in answer
