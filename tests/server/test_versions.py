"""Today's server and nodes of the version before: what they sent and read, written by hand.

A version that is spoken no more goes from here with its names in `protocol.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from embedding.exchange.channel import Channel
from embedding.exchange.codec import encode_pull, encode_push
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import SourceProgress, Table
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer, running_server

EARLIER = PROTOCOL_VERSION - 1
READ_BEFORE = frozenset(
    {
        *("clock", "sequence", "durable", "epoch", "dim", "window_unit", "policy", "staleness"),
        *("n_push", "n_fetch", "session", "ahead", "active", "min_count", "rare_mentions"),
        *("usage", "pace", "shared", "offset", "salt", "min_authors", "min_sources", "shards"),
        *("split", "liveness_s"),
    }
)
"""Every key that such a node reads of the answer to its greeting; it fails without one."""
DIM = 4


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    with running_server(ServerConfig(min_count=1), dim=DIM) as running:
        yield running


def greeting(version: int, node: str = "old") -> Message:
    header = {"op": "hello", "version": version, "node": node, "config_digest": "", "clock": 0}
    return Message({**header, "life": "a"})


def a_push(sequence: int, ids: np.ndarray) -> Push:
    values = np.ones((len(ids), DIM), dtype=np.float32)
    counts = BlockCounts((CountGroup("뉴스", 0, len(ids)),), ids, [], ids * 0 + 1, ids * 0 + 1)
    return Push(
        node="old",
        sequence=sequence,
        clock=sequence - 1,
        deltas=(RowDelta(Table.IN, ids, values),),
        counts=counts,
        progress=(SourceProgress("뉴스", 1, len(ids), 0.0, 0),),
        tokens=len(ids),
        offset="page 7",
    )


def test_a_node_of_the_version_before_learns(server: ParameterServer) -> None:
    channel = Channel(
        server.location, ExchangeConfig().model_copy(update={"request_timeout_s": 60})
    )
    channel.open()
    welcome = channel.request(greeting(EARLIER)).header
    assert welcome.keys() >= READ_BEFORE
    ones = np.ones(2, dtype=np.int64)
    answer = channel.request(
        Message({"op": "admit"}, {"counts": ones}, {"words": pa.array(["말", "글"])})
    )
    ids = answer.array("ids", "i8", 1)
    before = channel.request(
        encode_pull(PullRequest({Table.IN: ids, Table.OUT: ids[:0]}, 0))
    ).arrays
    channel.request(encode_push(a_push(1, ids)))
    after = channel.request(encode_pull(PullRequest({Table.IN: ids, Table.OUT: ids[:0]}, 1))).arrays
    moved = [name for name in before if not np.array_equal(before[name], after[name])]
    assert moved, "its push is in the rows that it reads"
    channel.close()

    again = Channel(server.location, ExchangeConfig().model_copy(update={"request_timeout_s": 60}))
    again.open()
    assert again.request(greeting(EARLIER)).header["offset"] == "page 7"
    again.close()


@pytest.mark.parametrize(
    ("version", "who"),
    [(PROTOCOL_VERSION + 1, "the server"), (EARLIER - 1, "the node"), (1, "the node")],
)
def test_others_hear_one_sentence(server: ParameterServer, version: int, who: str) -> None:
    channel = Channel(
        server.location, ExchangeConfig().model_copy(update={"request_timeout_s": 60})
    )
    channel.open()
    with pytest.raises(RefusedError) as refused:
        channel.request(greeting(version))
    expected = (
        f"node old: protocol {version}; this server speaks {EARLIER} to {PROTOCOL_VERSION}: "
        f"bring {who} up to date."
    )
    assert str(refused.value) == expected
    channel.close()


def test_nodes_of_both_versions_learn_together(server: ParameterServer) -> None:
    channels: list[Any] = []
    for version, node in ((EARLIER, "old"), (PROTOCOL_VERSION, "new")):
        channel = Channel(
            server.location, ExchangeConfig().model_copy(update={"request_timeout_s": 60})
        )
        channel.open()
        assert channel.request(greeting(version, node)).header.keys() >= READ_BEFORE
        channels.append(channel)
    for channel in channels:
        assert channel.request(Message({"op": "confirm"})).header["status"] == "ok"
        channel.close()
