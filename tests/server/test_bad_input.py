"""Messages that are wrong: refused with the reason, tables unchanged, others unharmed."""

from __future__ import annotations

import contextlib
import copy
import socket

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from named import named

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.contributors import AdmissionRequest
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import PROTOCOL_VERSION, Ack, PullRequest, Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import ExchangeError, RefusedError, UnavailableError
from embedding.kernel.records import ScorePairs, SourceProgress, Table
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from generated import examples

DIM = 4
WORDS = ["말", "글", "집", "길"]


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.fixture(scope="module")
def server():
    with running_server(ServerConfig(min_count=1, max_message_bytes=1_000_000), dim=DIM) as running:
        yield running


@pytest.fixture
def channel(server):
    opened = Channel(server.location, ExchangeConfig().model_copy(update={"request_timeout_s": 60}))
    opened.open()
    greet(opened)
    opened.request(to_message(AdmissionRequest(WORDS, ints(1, 1, 1, 1))))
    opened.request(to_message(PullRequest({}, 0)))
    yield opened
    opened.close()


def greet(channel: Channel, **changes) -> Message:
    header = {
        "op": "hello",
        "version": PROTOCOL_VERSION,
        "node": "fuzz",
        "config_digest": "",
        "clock": 0,
    }
    return channel.request(Message({**header, **changes}))


def picture(server):
    """Everything that a refused message must not change."""
    state = server.state
    with state.lock:
        every = np.arange(state.vocabulary.rows)
        return (
            [state.tables.read(table, every).tobytes() for table in state.tables.kinds],
            state.vocabulary.next_id,
            dict(state.vocabulary.candidates),
            state.vocabulary.counts(state.vocabulary.alive()).tolist(),
            state.meters.tokens,
            state.meters.pushes,
            copy.deepcopy(state.ledger.of("fuzz")),
            list(state.machine.board.held),
            state.accounts.windows.windows(),
        )


def a_push(server, **changes) -> Push:
    entry = server.state.ledger.of("fuzz")
    clock = server.state.machine.board.members["fuzz"].clock
    good = {
        "node": "fuzz",
        "sequence": entry.accepted + 1,
        "clock": clock,
        "deltas": (delta(ints(0, 1)),),
        "counts": named(["말"]),
        "progress": (SourceProgress("뉴스", 1, 1, 0.0, 0),),
        "tokens": 1,
    }
    return Push(**{**good, **changes})


def delta(ids, values=None, dim=DIM) -> RowDelta:
    return RowDelta(Table.IN, ids, np.ones((len(ids), dim), "f4") if values is None else values)


def values(bad: float) -> np.ndarray:
    found = np.ones((2, DIM), dtype=np.float32)
    found[1, 2] = bad
    return found


def known(id_: int) -> BlockCounts:
    """One occurrence of a word by its row id."""
    return BlockCounts((CountGroup("뉴스", 0, 1),), ints(id_), [], ints(1), ints(1))


def halves(bad: float) -> np.ndarray:
    return values(bad).astype(np.float16)


WRONG = {
    "an unknown id": ({"deltas": (delta(ints(0, 4)),)}, "an id outside"),
    "a negative id": ({"deltas": (delta(ints(-1, 0)),)}, "an id outside"),
    "ids that repeat": ({"deltas": (delta(ints(1, 1)),)}, "names one twice"),
    "ids that repeat apart": ({"deltas": (delta(ints(1, 0, 1)),)}, "names one twice"),
    "an unknown id counted": ({"counts": known(4)}, "an id outside"),
    "another dim": ({"deltas": (delta(ints(0), dim=DIM + 1),)}, "shape"),
    "a NaN": ({"deltas": (delta(ints(0, 1), values(np.nan)),)}, "not finite"),
    "a NaN in half precision": ({"deltas": (delta(ints(0, 1), halves(np.nan)),)}, "not finite"),
    "an infinity in half precision": (
        {"deltas": (delta(ints(0, 1), halves(np.inf)),)},
        "not finite",
    ),
    "an infinity": ({"deltas": (delta(ints(0, 1), values(np.inf)),)}, "not finite"),
    "an absurd value": ({"deltas": (delta(ints(0, 1), values(1e30)),)}, "absurdly"),
    "a clock of the future": ({"clock": 10**6}, "reads at clock"),
    "a gap": ({"sequence": 10**6}, "gap"),
    "another node's name": ({"node": "other"}, "this stream is node fuzz's"),
    "a window out of time": (
        {"counts": named(["말"], window=2**39)},
        "calendar",
    ),
    "a publication out of time": (
        {"progress": (SourceProgress("뉴스", 1, 1, 9.9e11, 0),)},
        "calendar",
    ),
    "progress out of time": (
        {"progress": (SourceProgress("뉴스", 1, 1, 0.0, 2**39),)},
        "calendar",
    ),
}


def a_score(source: str, *, word: int = 0, window: int = 0) -> ScorePairs:
    return ScorePairs(source, ints(0), ints(word), ints(0).reshape(1, 1), ints(window))


def scores_of(named: object) -> Message:
    """A pull with one pair, of which its header says something else."""
    message = to_message(PullRequest({}, 0, [a_score("s")]))
    return Message({**message.header, "score": named}, message.arrays)


def admitting(n: int, words: list[str], *counts: int) -> Message:
    """A wish for the rows of n words."""
    return Message({"op": "admit", "sizes": [n]}, {"i8": ints(*counts)}, {"words": pa.array(words)})


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_push_is_refused_and_changes_nothing(server, channel, name):
    changes, reason = WRONG[name]
    before = picture(server)
    with pytest.raises(RefusedError, match=reason):
        channel.request(to_message(a_push(server, **changes)))
    assert picture(server) == before
    answer = channel.request(to_message(a_push(server)))
    assert not from_message(Ack, answer).duplicate, "the stream goes on"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (to_message(PullRequest({Table.IN: ints(99), Table.OUT: ints()}, 0)), "an id outside"),
        (to_message(PullRequest({Table.IN: ints(), Table.OUT: ints(-5)}, 0)), "an id outside"),
        (to_message(PullRequest({}, 10**7)), "or ahead at"),
        (
            to_message(
                PullRequest(
                    {Table.IN: ints(), Table.OUT: ints()},
                    0,
                    [ScorePairs("s", ints(0), ints(99), ints(0).reshape(1, 1), ints(0))],
                )
            ),
            "an id outside",
        ),
        (Message({"op": "pull", "clock": "0", "ids": []}), "clock"),
        (
            to_message(
                PullRequest(
                    {Table.IN: ints(), Table.OUT: ints()}, 0, [a_score("s"), a_score("t", word=99)]
                )
            ),
            "an id outside",
        ),
        (
            to_message(
                PullRequest(
                    {Table.IN: ints(), Table.OUT: ints()}, 0, [a_score("s"), a_score("a\nb")]
                )
            ),
            "a name of at most",
        ),
        (
            to_message(PullRequest({}, 0, [a_score("s" * 1_001)])),
            "a name of at most",
        ),
        (
            to_message(PullRequest({}, 0, [a_score("s", window=2**40)])),
            "windows holds 1.09951e\\+12",
        ),
        (scores_of({"s": 1}), "a list of 0 to"),
        (scores_of([["s", [0, 1]]]), "no pair to score"),
        (scores_of([["s", [True, 1]]]), "lengths of score. must be whole"),
        (scores_of([["s", [2**63, 1]]]), "lengths of score. must be whole"),
        (scores_of([["s"]]), r"\[source, lengths\]"),
        (scores_of([[["s"], [1, 1]]]), "must be a string"),
        (scores_of([["s", [1, 1]], ["t", [1, 1]]]), "shorter than its records say"),
        (scores_of([["s", [1, 2]]]), "shorter than its records say"),
        (Message({"op": "nothing"}), "not known"),
        (Message({"op": ["pull"]}), "not known"),
        (Message({}), "not known"),
        (Message({"op": "vocabulary", "since": -1}), "since"),
        (admitting(2, ["a", "b"], 1), "shorter than its records say"),
        (admitting(1, ["a", "b"], 1), "longer than its records say"),
        (admitting(1, ["a"], -1), "below 0"),
        (Message({"op": "push"}, {"x": np.zeros(300_000)}), "max_message_bytes"),
    ],
)
def test_a_wrong_request_is_refused_and_the_stream_goes_on(server, channel, message, reason):
    before = picture(server)
    with pytest.raises(RefusedError, match=reason):
        channel.request(message)
    assert picture(server) == before
    assert channel.request(Message({"op": "confirm"})).header["status"] == "ok"


def test_a_stream_begins_with_a_greeting_of_this_protocol(server):
    opened = Channel(server.location, ExchangeConfig())
    opened.open()
    with pytest.raises(RefusedError, match="must be `hello`"):
        opened.request(Message({"op": "confirm"}))
    with pytest.raises(RefusedError, match="speaks"):
        greet(opened, version=99)
    with pytest.raises(RefusedError, match="needs a name"):
        greet(opened, node="")
    opened.close()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**63) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
quiet = settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quiet
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "op",
                "sequence",
                "clock",
                "tokens",
                "pairs",
                "loss_sum",
                "counts",
                "deltas",
                "progress",
                "parts",
                "node",
            ]
        ),
        json_values,
        min_size=1,
    )
)
def test_fuzzed_headers_never_change_tables_unless_they_are_taken(server, channel, changes):
    message = to_message(a_push(server))
    before = picture(server)
    try:
        answer = channel.request(
            Message({**message.header, **changes}, message.arrays, message.texts)
        )
    except RefusedError:
        assert picture(server) == before
    else:
        assert answer.header["status"] in ("ok", "waiting")


arrays = st.builds(
    lambda dtype, shape, seed: (
        np.random.default_rng(seed).normal(size=shape, scale=3).astype(dtype)
    ),
    st.sampled_from(["f2", "f4", "f8", "i4", "i8"]),
    st.sampled_from([(0,), (1,), (2,), (5,), (0, 4), (2, 4), (2, 3), (4, 2)]),
    st.integers(0, 5),
)


@quiet
@given(
    st.dictionaries(
        st.sampled_from(["in.i8", "in.f4", "in.f2", "out.i8", "counts.i8", "counts.words"]),
        arrays,
        min_size=1,
    )
)
def test_fuzzed_arrays_never_change_tables_unless_they_are_taken(server, channel, changes):
    message = to_message(a_push(server))
    before = picture(server)
    try:
        channel.request(Message(message.header, {**message.arrays, **changes}, message.texts))
    except RefusedError:
        assert picture(server) == before
    assert np.isfinite(server.state.tables.read(Table.IN, np.arange(4))).all()


def test_a_stream_of_another_schema_ends_alone(server, channel):
    client = flight.connect(server.location)
    descriptor = flight.FlightDescriptor.for_command(b"yeoron.exchange")
    writer, reader = client.do_exchange(descriptor)
    writer.begin(pa.schema([("x", pa.int64())]))
    writer.write_with_metadata(pa.record_batch({"x": pa.array([1])}), b'{"op": "hello"}')
    answer = reader.read_chunk()
    assert b"refused" in answer.app_metadata.to_pybytes()
    writer.close()
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"something"))
    with contextlib.suppress(pa.ArrowException):
        writer.begin(pa.schema([]))
    with pytest.raises((pa.ArrowException, StopIteration)):
        reader.read_chunk()
    client.close()
    assert channel.request(Message({"op": "confirm"})).header["status"] == "ok"


def test_bytes_that_are_no_protocol_at_all_harm_nobody(server, channel):
    port = int(server.location.rsplit(":", 1)[1])
    for rubbish in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 1000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(rubbish)
    assert channel.request(Message({"op": "confirm"})).header["status"] == "ok"


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("unknown", b"{}", "is accepted"),
        ("report", b"[", "not JSON"),
        ("report", b"[]", "not a JSON object"),
        ("report", b'{"node": "n"}', "JSON object is accepted"),
        ("report", b'{"report": {}}', "name is needed"),
        ("idle", b"{}", "name is needed"),
        ("cut", b"{}", "ISO 8601"),
        ("cut", b'{"start": "2020-01-01", "end": "2020-01-02"}', "time zone"),
        ("configure", b'{"staleness": -1}', "staleness"),
    ],
)
def test_wrong_control_calls_are_refused(server, name, body, reason):
    client = flight.connect(server.location)
    (answer,) = client.do_action(flight.Action(name, body))
    found = answer.body.to_pybytes().decode()
    client.close()
    assert '"refused"' in found
    assert reason in found


def test_a_failure_of_the_server_itself_is_told_without_its_content(server, channel, monkeypatch):
    def fail(since):
        raise RuntimeError("비밀 문장")

    monkeypatch.setattr(server.state.words, "delta", fail)
    with pytest.raises(ExchangeError, match="RuntimeError") as caught:
        channel.request(Message({"op": "vocabulary", "since": 0}))
    assert "비밀" not in str(caught.value)
    assert not isinstance(caught.value, (RefusedError, UnavailableError))


def test_reports_of_any_shape_are_only_shown(server, channel):
    for report in (
        {"sources": 3},
        {"sources": {"s": 3}},
        {"sources": {"s": {"pending": -1}}},
        {"sources": {"s": {"pending": "x"}}},
        {"event_now": "x"},
        {"event_now": 1e300},
        {"queue": {"depth": 4}},
    ):
        channel.action("report", {"node": "fuzz", "report": report})
        assert server.status()["nodes"]["fuzz"]["report"] == report
    assert channel.action("status", {})["nodes"]["fuzz"]["report"] == {"queue": {"depth": 4}}
