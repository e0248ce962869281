"""A server hears nodes of its own version of the protocol alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer, running_server


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    with running_server(ServerConfig(min_count=1), dim=4) as running:
        yield running


def greeting(version: int, node: str = "old") -> Message:
    header = {"op": "hello", "version": version, "node": node, "config_digest": "", "clock": 0}
    return Message({**header, "life": "a"})


@pytest.mark.parametrize(
    ("version", "who"),
    [
        (PROTOCOL_VERSION + 1, "the server"),
        (PROTOCOL_VERSION - 1, "the node"),
        (1, "the node"),
    ],
)
def test_nodes_of_other_versions_hear_one_sentence(
    server: ParameterServer, version: int, who: str
) -> None:
    channel = Channel(
        server.location, ExchangeConfig().model_copy(update={"request_timeout_s": 60})
    )
    channel.open()
    with pytest.raises(RefusedError) as refused:
        channel.request(greeting(version))
    expected = (
        f"node old: protocol {version}; this server speaks {PROTOCOL_VERSION}: bring server and "
        f"nodes up to date together; {who} is the older one."
    )
    assert str(refused.value) == expected
    channel.close()
