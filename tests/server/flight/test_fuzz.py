"""Bytes that no client of ours sends: refused, tables as they were, others unharmed, no trace."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import logging
import socket
import struct

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rawgrpc import exchange, flight_data, greeting, ipc, parts

from embedding.exchange.codec import to_message
from embedding.exchange.compression.base import compressor, packing
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.contributors import AdmissionRequest
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import PullRequest, Push
from embedding.exchange.wire import MESSAGE_SCHEMA, Message, decode, read_json
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import ScorePairs, SourceProgress, Table
from embedding.server import validation
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from generated import examples

DIM, BUCKETS = 4, 16
LIMIT = 1_000_000
WORDS = ["말", "글", "집", "길"]


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.fixture(scope="module")
def server():
    config = ServerConfig(min_count=1, max_message_bytes=LIMIT)
    with running_server(config, dim=DIM, buckets=BUCKETS) as running:
        yield running


def opened(server, node: str) -> Channel:
    channel = Channel(
        server.location, ExchangeConfig().model_copy(update={"request_timeout_s": 60})
    )
    channel.open()
    channel.request(greeting(node))
    return channel


@pytest.fixture(scope="module")
def bystander(server):
    """A node that does nothing wrong."""
    channel = opened(server, "bystander")
    channel.request(to_message(AdmissionRequest(WORDS, ints(1, 1, 1, 1))))
    yield channel
    channel.close()


@pytest.fixture(autouse=True)
def unharmed(server, bystander, caplog):
    """Whatever a test sends: tables, vocabulary and the other node are as before, logs are calm."""
    before = picture(server)
    caplog.set_level(logging.WARNING)
    yield
    assert picture(server) == before
    assert bystander.request(Message({"op": "confirm"})).header["status"] == "ok"
    assert (
        bystander.request(
            to_message(PullRequest({Table.IN: ints(0, 1), Table.OUT: ints(2)}, 0))
        ).header["status"]
        == "ok"
    )
    json.dumps(server.status(), allow_nan=False, ensure_ascii=False).encode()
    loud = [r for r in caplog.records if r.levelno >= logging.ERROR or r.exc_info]
    assert loud == []


def picture(server) -> tuple[str, ...]:
    """Hashes of what a refused message must not change."""
    state = server.state
    with state.lock:
        every = np.arange(state.vocabulary.rows)
        found = [
            state.tables.read(table, np.arange(BUCKETS) if table is Table.SUB else every)
            for table in state.tables.kinds
        ]
        rest = (
            state.vocabulary.next_id,
            dict(state.vocabulary.candidates),
            state.vocabulary.counts(state.vocabulary.alive()).tolist(),
            state.meters.tokens,
            state.meters.pushes,
            list(state.machine.board.held),
            sorted(state.accounts.windows.windows()),
        )
    return (*(hashlib.sha256(rows.tobytes()).hexdigest() for rows in found), repr(rest))


def a_push(**changes) -> Push:
    values = np.ones((2, DIM), dtype=np.float32)
    good = {
        "node": "fuzz",
        "sequence": 1,
        "clock": 0,
        "deltas": (RowDelta(Table.IN, ints(0, 1), values),),
        "progress": (SourceProgress("뉴스", 1, 1, 0.0, 0),),
    }
    return Push(**{**good, **changes})


def say(server, *bad: bytes, schema: bytes | None = None) -> bytes:
    """Greet properly, send `bad`, return the last answer."""
    first, header, metadata, body = parts(greeting("fuzz"))
    hello = flight_data(header, metadata, body)
    return exchange(server.location, [flight_data(schema or first, first=True), hello, *bad])[-1]


edits = st.lists(
    st.tuples(
        st.sampled_from(["byte", "word", "cut", "insert"]),
        st.floats(0, 1, exclude_max=True),
        st.one_of(
            st.integers(0, 255),
            st.sampled_from([2**31 - 1, 2**63 - 1, 2**40, 2**20, -1, -(2**63), 0, 1]),
        ),
    ),
    min_size=1,
    max_size=4,
)


def edited(data: bytes, changes) -> bytes:
    held = bytearray(data)
    for kind, share, value in changes:
        at = int(share * len(held))
        word = struct.pack("<q", value)
        if kind == "byte":
            held[at : at + 1] = word[:1]
        elif kind == "word":
            at -= at % 4
            held[at : at + 8] = word[: max(0, min(8, len(held) - at))]
        elif kind == "cut":
            del held[at : at + 1 + abs(value) % 16]
        else:
            held[at:at] = word
    return bytes(held)


patient = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# Pushes that a change left whole would be taken: these are of a clock that their node never read.
_WHOLE = to_message(a_push(clock=10**6))


def packed(kind: str) -> Message:
    """The same push with its rows compressed."""
    values = np.random.default_rng(0).normal(size=(4, DIM)).astype(np.float32)
    made = compressor(kind).of(ExchangeConfig()).pack(Table.IN, ints(0, 1, 2, 3), values)
    return to_message(a_push(clock=10**6, deltas=(), packed=(made,)))


MESSAGES = {
    "plain": _WHOLE,
    "counted": to_message(
        a_push(
            clock=10**6,
            counts=BlockCounts(
                (CountGroup("뉴스", 0, 2),), ints(0, -1), pa.array(["새말"]), ints(2, 1), ints(1, 1)
            ),
        )
    ),
    **{kind: packed(kind) for kind in packing()},
}


@patient
@given(
    st.sampled_from(sorted(MESSAGES)),
    st.sampled_from(["schema", "header", "metadata", "body"]),
    edits,
)
@example("plain", "header", [("word", 0.06, 2**40)])
def test_messages_with_bytes_changed_are_refused(server, name, where, changes):
    schema, header, metadata, body = parts(MESSAGES[name])
    held = {"schema": schema, "header": header, "metadata": metadata, "body": body}
    held[where] = edited(held[where], changes)
    last = say(
        server,
        flight_data(held["header"], held["metadata"], held["body"]),
        schema=held["schema"],
    )
    assert b'"status": "ok"' not in last or b'"session"' in last
    assert b'"failed"' not in last
    assert b"Traceback" not in last


@pytest.mark.parametrize("rows", [2**62, 2**40, 100_000, 0, -1])
def test_a_claimed_number_of_rows_is_not_believed(server, rows):
    """The offsets of a batch that says it has more rows than it has would be read past its end."""
    _, header, metadata, body = parts(greeting("fuzz"))
    held = bytearray(header)
    one = struct.pack("<q", 1)
    for at in range(0, len(held) - 7, 4):
        if held[at : at + 8] == one:
            held[at : at + 8] = struct.pack("<q", rows)
    assert b"refused" in say(server, flight_data(bytes(held), metadata, body))


def test_slots_without_offsets_or_with_nulls_are_refused(server):
    _, header, metadata, body = parts(_WHOLE)
    none = header.replace(struct.pack("<q", 16), struct.pack("<q", 0))
    assert b"refused" in say(server, flight_data(none, metadata, body))
    slots = [pa.array([None], pa.large_binary())] * len(MESSAGE_SCHEMA)
    batch = pa.RecordBatch.from_arrays(slots, schema=MESSAGE_SCHEMA)
    (_, _), (header, body) = ipc(batch)
    assert b"a slot is null" in say(server, flight_data(header, metadata, body))


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_small_message_that_unpacks_into_a_large_one_is_refused(server, compression):
    zeros = Message({"op": "push"}, {"in.f4": np.zeros((4_000_000, 4), dtype=np.float32)})
    _, header, metadata, body = parts(zeros, compression)
    assert len(body) < LIMIT
    assert b"max_message_bytes" in say(server, flight_data(header, metadata, body))
    _, header, metadata, body = parts(_WHOLE, compression)
    for claimed in (2**62, 2**45, -5):
        at = body.find(struct.pack("<q", 2 * DIM * 4))
        lying = body[:at] + struct.pack("<q", claimed) + body[at + 8 :]
        assert b"ok" not in say(server, flight_data(header, metadata, lying)).split(b"reason")[0]


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("x", pa.int64())]),
        pa.schema([]),
        pa.schema([("slot0", pa.dictionary(pa.int8(), pa.string()))]),
        pa.schema([pa.field(f"slot{i}", pa.binary()) for i in range(16)]),
        pa.schema([(f"slot{i}", pa.list_(pa.struct([("a", pa.int8())]))) for i in range(16)]),
    ],
)
def test_another_schema_is_refused(server, schema):
    _, _, metadata, _ = parts(greeting("fuzz"))
    columns = [pa.array([None], each.type) for each in schema]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    messages = ipc(batch)
    sent = [flight_data(messages[0][0], first=True)]
    sent += [flight_data(header, metadata, body) for header, body in messages[1:]]
    assert b"refused" in exchange(server.location, sent)[-1]


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[" * 1_000_000,
        b'{"op": "push", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"op": ' + b"9" * 100_000 + b"}",
        b'{"op": "confirm", "clock": NaN}',
        b'{"op": "confirm", "clock": 1e999}',
        b'{"op": "hello", "version": 1, "node": "\\ud800"}',
        b'{"op": "push", "parts": [["in.i8", "i8", [1099511627775, 1099511627775]]]}',
        b'{"op": "push", "parts": [["a", "i8", [9]], ["a", "i8", [9]]]}',
        b'{"op": "push", "parts": [["a", [], [9]]]}',
        b'{"op": "push", "parts": [["a", "str", [-1]]]}',
        b"{" + b" " * 5_000_000 + b"}",
        b"{" + b",".join(b'"%d": 1' % i for i in range(300_000)) + b"}",
    ],
    ids=lambda data: f"{data[:24]!r}+{len(data)}",
)
def test_headers_that_are_bombs_are_refused(server, metadata):
    _, header, _, body = parts(_WHOLE)
    assert b'"refused"' in say(server, flight_data(header, metadata, body))


@given(st.binary(max_size=200))
def test_metadata_is_read_or_refused_and_never_fails(data):
    with contextlib.suppress(RefusedError):
        decode(None, pa.py_buffer(data))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(json_values)
def test_what_is_read_as_json_can_be_sent_on_as_json(value):
    try:
        found = read_json(json.dumps(value).encode())
    except ValueError:
        with pytest.raises(ValueError):
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        return
    assert found == value
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


def one_count(n: int, source: str = "뉴스") -> BlockCounts:
    return BlockCounts((CountGroup(source, 0, 1),), ints(0), [], ints(n), ints(1))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"counts": one_count(2**41)}, "limit"),
        ({"tokens": 2**50}, "limit"),
        ({"pairs": 2**50}, "limit"),
        ({"counts": one_count(1, "s" * 2_000)}, "request"),
        ({"counts": one_count(1, "a\nb")}, "request"),
        ({"progress": (SourceProgress("\x1b[2J", 1, 1, 0.0, 0),)}, "request"),
        ({"progress": (SourceProgress("s", 1, 2**45, 0.0, 0),)}, "limit"),
        (
            {"progress": tuple(SourceProgress(f"s{i}", 1, 1, 0.0, 0) for i in range(10_001))},
            "limit",
        ),
        ({"deltas": (RowDelta(Table.SUB, ints(BUCKETS), np.ones((1, DIM), "f4")),)}, "id"),
        ({"deltas": (RowDelta(Table.SUB, ints(-1), np.ones((1, DIM), "f4")),)}, "id"),
        ({"deltas": (RowDelta(Table.IN, ints(-(2**63)), np.ones((1, DIM), "f4")),)}, "id"),
        ({"deltas": (RowDelta(Table.IN, ints(2**63 - 1), np.ones((1, DIM), "f4")),)}, "id"),
        ({"deltas": (RowDelta(Table.IN, ints(0, 0), np.ones((2, DIM), "f4")),)}, "id"),
        ({"deltas": (RowDelta(Table.IN, ints(0), np.ones((1, DIM + 1), "f4")),)}, "shape"),
        ({"deltas": (RowDelta(Table.IN, ints(0), np.full((1, DIM), np.nan, "f4")),)}, "values"),
        ({"sequence": 99}, "sequence"),
        ({"clock": 99}, "clock"),
        ({"node": "bystander"}, "request"),
    ],
)
def test_refusals_are_counted_by_kind(server, changes, kind):
    channel = opened(server, "fuzz")
    channel.request(to_message(PullRequest({}, 0)))
    before = server.state.meters.refusals[kind]
    with pytest.raises(RefusedError):
        channel.request(to_message(a_push(**changes)))
    assert server.state.meters.refusals[kind] == before + 1
    channel.close()


def test_a_word_that_is_none_is_not_kept(server):
    channel = opened(server, "fuzz")
    long = pa.array(["길" * validation.MAX_WORD_BYTES])
    with pytest.raises(RefusedError, match="a word of"):
        channel.request(to_message(AdmissionRequest(long, ints(1))))
    counts = BlockCounts((CountGroup("s", 0, 1),), ints(-1), long, ints(1), ints(1))
    with pytest.raises(RefusedError, match="a word of"):
        channel.request(to_message(a_push(counts=counts)))
    channel.close()


def test_a_pull_that_asks_for_more_than_a_message_holds_is_refused(server):
    channel = opened(server, "fuzz")
    many = np.zeros(100_000, dtype=np.int64)
    with pytest.raises(RefusedError, match="max_message_bytes"):
        channel.request(to_message(PullRequest({Table.IN: many, Table.OUT: ints()}, 0)))
    pairs = ScorePairs("s", many[:1_000], many[:1_000], many.reshape(1_000, 100), many[:1_000])
    small = ScorePairs("t", ints(0), ints(0), np.zeros((1, 100), dtype=np.int64), ints(0))
    with pytest.raises(RefusedError, match="rows to score"):
        channel.request(to_message(PullRequest({}, 0, [small, pairs])))
    channel.close()


def test_so_many_sources_are_scored_and_no_more(server, monkeypatch):
    channel = opened(server, "fuzz")
    one = ints(0)
    pairs = [ScorePairs(f"scored-{n}", one, one, one.reshape(1, 1), one) for n in range(3)]
    monkeypatch.setattr(validation, "MAX_SOURCES", len(server.state.scores.sources) + 2)
    with pytest.raises(RefusedError, match="3 new sources"):
        channel.request(to_message(PullRequest({}, 0, pairs)))
    assert not any(pair.source in server.state.scores.sources for pair in pairs)
    channel.request(to_message(PullRequest({}, 0, pairs[:2])))
    with pytest.raises(RefusedError, match="1 new sources"):
        channel.request(to_message(PullRequest({}, 0, pairs[1:])))
    channel.close()


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "n" * 1_001])
def test_names_that_cannot_be_shown_are_refused(server, name):
    channel = Channel(
        server.location, ExchangeConfig().model_copy(update={"request_timeout_s": 60})
    )
    channel.open()
    with pytest.raises(RefusedError, match="name"):
        channel.request(greeting(name))
    for action in ("report", "idle"):
        with pytest.raises(RefusedError, match="name"):
            channel.action(action, {"node": name, "report": {}})
    channel.close()
    assert name not in server.status()["nodes"]


def test_so_many_nodes_are_known_and_no_more(server, monkeypatch):
    monkeypatch.setattr(validation, "MAX_NODES", 2)
    opened(server, "fuzz").close()
    with pytest.raises(RefusedError, match="2 nodes are known"):
        opened(server, "another").close()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("report", b'{"node": "fuzz", "report": {"x": NaN}}'),
        ("report", b'{"node": "fuzz", "report": {"x": 1e999}}'),
        ("report", b'{"node": "fuzz", "report": {"x": "\\udc00"}}'),
        ("report", b'{"node": "fuzz", "report": {"x": "' + b"x" * 300_000 + b'"}}'),
        ("report", b'{"node": "fuzz", "report": {"sources": {"\\u0000": {"pending": 1}}}}'),
        ("report", b"[" * 1_000_000),
        ("status", b'{"x": "' + b"x" * 9_000_000 + b'"}'),
        ("cut", b'{"start": "9999-12-31T00:00:00+00:00", "end": "0001-01-01T00:00:00+00:00"}'),
        ("cut", b'{"start": [], "end": {}}'),
        ("configure", b'{"policy": ["bsp"]}'),
        ("configure", b'{"liveness_timeout_s": -1}'),
        ("configure", b'{"unknown": 1}'),
        ("checkpoint" * 1_000, b"{}"),
        ("", b"{}"),
    ],
    ids=lambda value: str(value[:20]),
)
def test_control_calls_that_are_wrong_are_refused(server, name, body):
    client = flight.connect(server.location)
    (answer,) = client.do_action(flight.Action(name, body))
    assert b'"refused"' in answer.body.to_pybytes()
    assert answer.body.size < 2_000
    client.close()


def test_calls_that_the_service_does_not_have_say_so(server):
    client = flight.connect(server.location)
    described = flight.FlightDescriptor.for_path("x")
    for call in (
        lambda: client.do_get(flight.Ticket(b"x")).read_all(),
        lambda: client.get_flight_info(described),
        lambda: list(client.list_flights()),
        lambda: client.do_put(described, MESSAGE_SCHEMA)[0].close(),
    ):
        with pytest.raises((pa.ArrowException, NotImplementedError, OSError)) as caught:
            call()
        assert "Traceback" not in str(caught.value)
    client.close()


@patient
@given(st.binary(min_size=1, max_size=300), st.booleans())
def test_bytes_at_either_port_harm_nobody(server, data, preface):
    ports = [int(url.rsplit(":", 1)[1]) for url in (server.location, server.http_url)]
    start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" if preface else b""
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(start + data)


def test_bad_messages_leave_no_memory_behind(server):
    _, header, metadata, body = parts(
        Message({"op": "push"}, {"in.f4": np.zeros((50_000, 4), dtype=np.float32)})
    )
    large = flight_data(header, metadata, body)
    broken = flight_data(header[:-8], metadata, body)

    def abuse(times: int) -> int:
        for _ in range(times):
            say(server, large)
            say(server, broken)
        gc.collect()
        pa.default_memory_pool().release_unused()
        return psutil.Process().memory_info().rss

    before = abuse(15)
    assert abuse(60) - before < 48 * 1024 * 1024  # 120 messages of 0.8 MB came in
