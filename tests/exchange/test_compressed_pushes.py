"""Compressed pushes to a real server: nothing learnt is lost, nothing malformed is taken."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedding.exchange.client import ParameterClient
from embedding.exchange.codec import to_message
from embedding.exchange.compression.base import packing
from embedding.exchange.compression.traits import COMPRESSIONS
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from generated import examples

DIM, WORDS = 16, 20
KINDS = sorted(COMPRESSIONS)
FUZZ = settings(
    deadline=None,
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def config(kind: str, **more) -> ExchangeConfig:
    return ExchangeConfig(
        rows="float32", compression=kind, threshold=0.05, top_share=0.2, max_backoff_s=0.1, **more
    )


def open_client(server, kind: str, **more) -> tuple[ParameterClient, np.ndarray]:
    client = ParameterClient(server.location, node="n0", config=config(kind, **more))
    client.hello()
    words = [f"말{i}" for i in range(WORDS)]
    return client, client.admit(words, np.full(WORDS, 9, dtype=np.int64))


def deltas(rng, ids: np.ndarray) -> tuple[RowDelta, ...]:
    chosen = rng.choice(ids, 12, replace=False)
    values = rng.normal(size=(12, DIM), scale=0.05).astype(np.float32)
    return tuple(RowDelta(table, chosen, values) for table in (Table.IN, Table.OUT))


def contexts(server, ids: np.ndarray) -> np.ndarray:
    slots = server.state.vocabulary.slots(ids, "test")
    return server.state.tables.read(Table.OUT, slots)


@pytest.fixture
def server():
    config = ServerConfig(min_count=1, half_life_tokens=None)
    with running_server(config, SyncConfig(policy="asp"), dim=DIM) as running:
        yield running


@pytest.mark.parametrize("cache", [0, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_a_node_sees_all_that_it_learnt_and_in_the_end_the_server_has_it(server, kind, cache):
    client, ids = open_client(server, kind, cache_bytes=cache)
    rng = np.random.default_rng(3)
    learnt = np.zeros((WORDS, DIM), dtype=np.float32)
    clock = 0
    for sequence in range(1, 9):
        pushed = deltas(rng, ids)
        clock = client.push(Push("n0", sequence, clock, pushed)).clock
        learnt[np.searchsorted(ids, pushed[1].ids)] += pushed[1].values
        seen = client.pull(PullRequest({Table.IN: ids[:1], Table.OUT: ids}, clock=clock)).rows[
            Table.OUT
        ]
        assert np.allclose(seen, learnt, atol=2e-3)
    kept = float(np.abs(contexts(server, ids) - learnt).max())
    if kind in packing():
        assert kept > 4e-3
        assert client.flush_residuals(clock, 9).sequence > 8
    assert client.flush_residuals(clock, 99) is None
    # What was kept back comes in steps of half of its size.
    last = 2e-3 + 0.5 * kept if kind in packing() else 2e-3
    assert np.allclose(contexts(server, ids), learnt, atol=last)
    told = client.status()["bytes"]["pushed_per_entry"]
    assert 0 < told < {"none": 5.5, "fp16": 3.5}.get(kind, 3.0)
    client.close()


@pytest.mark.parametrize("kind", sorted(packing()))
def test_after_a_crash_of_the_server_the_same_bytes_come_again(tmp_path, kind):
    config = ServerConfig(min_count=1, half_life_tokens=None, state_dir=tmp_path / "before")
    sync = SyncConfig(policy="asp")
    rng = np.random.default_rng(5)
    with running_server(config, sync, dim=DIM) as server:
        port = int(server.location.rsplit(":", 1)[1])
        client, ids = open_client(server, kind)
        client.checkpoint()
        shutil.copytree(tmp_path / "before", tmp_path / "after")  # as a crash would leave it
        clock = client.push(Push("n0", 1, 0, deltas(rng, ids))).clock
        clock = client.push(Push("n0", 2, clock, deltas(rng, ids))).clock
        before = contexts(server, ids)
    again = config.model_copy(update={"port": port, "state_dir": tmp_path / "after"})
    with running_server(again, sync, dim=DIM) as server:
        seen = client.pull(PullRequest({Table.IN: ids[:1], Table.OUT: ids}, clock=clock)).rows[
            Table.OUT
        ]
        assert np.array_equal(contexts(server, ids), before)
        left = np.zeros_like(seen)
        client.feedback.add_to(Table.OUT, ids, left, 2)
        assert np.allclose(seen, before + left, atol=1e-6)
        client.close()


@pytest.mark.parametrize("kind", sorted(packing()))
def test_a_refused_push_is_taken_back_with_its_residual(server, kind):
    client, ids = open_client(server, kind)
    rng = np.random.default_rng(7)
    pushed = deltas(rng, ids)
    clock = client.push(Push("n0", 1, 0, pushed)).clock
    learnt = client.pull(PullRequest({Table.IN: ids[:1], Table.OUT: ids}, clock=clock)).rows[
        Table.OUT
    ]
    for wrong in (Push("n0", 2, clock + 9, deltas(rng, ids)), Push("other", 2, 0, pushed)):
        with pytest.raises(RefusedError):
            client.push(wrong)
    assert np.allclose(
        client.pull(PullRequest({Table.IN: ids[:1], Table.OUT: ids}, clock=clock)).rows[Table.OUT],
        learnt,
        atol=1e-6,
    )
    client.push(Push("n0", 2, clock, deltas(rng, ids)))
    client.close()


@pytest.fixture(params=sorted(packing()))
def victim(server, request):
    """A server, a stream to it, and a push as this compressor packs it."""
    client, ids = open_client(server, request.param)
    rng = np.random.default_rng(11)
    sent = client.feedback.encode(Push("n0", 1, 0, deltas(rng, ids)))
    yield server, client, ids, to_message(sent)
    client.close()


@FUZZ
@given(data=st.data())
def test_damaged_bytes_are_refused_or_finite_and_never_half_taken(victim, data):
    server, client, ids, message = victim
    before = contexts(server, ids)
    arrays = {name: np.array(part) for name, part in message.arrays.items()}
    named = json.loads(json.dumps(message.header["packed"]))
    name = data.draw(st.sampled_from(["in.u1", "out.u1"]))
    what = data.draw(st.sampled_from(["flip", "cut", "more", "rows", "dim", "entries", "kind"]))
    if what == "flip":
        at = data.draw(st.integers(0, len(arrays[name]) - 1))
        arrays[name][at] ^= 1 << data.draw(st.integers(0, 7))
    elif what == "cut":
        arrays[name] = arrays[name][: data.draw(st.integers(0, len(arrays[name]) - 1))]
    elif what == "more":
        arrays[name] = np.append(arrays[name], np.uint8(data.draw(st.integers(0, 255))))
    else:
        where = ["table", "kind", "rows", "dim", "entries"].index(what)
        change = data.draw(st.integers(-3, 2**45) if where > 1 else st.just("zip"))
        row = next(row for row in named if row[0] == name.removesuffix(".u1"))
        row[where] = change
    # A gap in the sequence: whatever passes every check of the rows is refused for that.
    header = {**message.header, "packed": named, "sequence": 77}
    with pytest.raises(RefusedError) as refused:
        client.peer.request(Message(header, arrays, message.texts))
    assert str(refused.value).endswith(".")
    assert np.array_equal(contexts(server, ids), before)


def test_packed_rows_of_unknown_tables_and_words_are_refused(server):
    client, ids = open_client(server, "onebit")
    rng = np.random.default_rng(2)
    far = replace(deltas(rng, ids)[0], ids=np.arange(12, dtype=np.int64) + 10_000)
    before = contexts(server, ids)
    with pytest.raises(RefusedError, match="id"):
        client.push(Push("n0", 1, 0, (far,)))
    sent = client.feedback.encode(Push("n0", 1, 0, deltas(rng, ids)))
    message = to_message(sent)
    for packed in ([["middle", "onebit", 1, DIM, DIM, [1]]], {}, [["in", "onebit", 1, DIM]]):
        with pytest.raises(RefusedError, match="packed"):
            client.peer.request(
                Message({**message.header, "packed": packed}, message.arrays, message.texts)
            )
    assert np.array_equal(contexts(server, ids), before)
    client.close()
