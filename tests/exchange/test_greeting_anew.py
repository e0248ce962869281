"""A client that gave up greets the server when it is asked again: its shards may be elsewhere."""

from __future__ import annotations

import time

import numpy as np
import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Push
from embedding.exchange.session import Session
from embedding.kernel.errors import UnavailableError
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server

MODEL = ModelConfig(dim=8)
CLIENT = ExchangeConfig(connect_timeout_s=0.05, max_backoff_s=0.2)


def test_a_stream_is_not_kept_by_who_gave_up(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ServerConfig(min_count=1, min_authors=1, min_sources=1, config_digest=MODEL.digest())
    greeted = []
    greet = Session._greet
    monkeypatch.setattr(Session, "_greet", lambda self: greeted.append(self) or greet(self))
    with (
        running_server(config, SyncConfig(policy="asp"), dim=MODEL.dim) as server,
        ParameterClient(
            server.location, node="n0", config=CLIENT, config_digest=MODEL.digest()
        ) as client,
    ):
        client.hello()

        def away(channel: object) -> None:
            time.sleep(2 * CLIENT.connect_timeout_s)  # so the first try is the last
            raise UnavailableError("a shard is away.")

        with pytest.raises(UnavailableError, match="a shard is away"):
            client.peer.run(away)
        before = len(greeted)
        assert client.admit(["말"], np.array([1])).tolist() == [0]
        assert len(greeted) == before + 1


def test_a_node_with_many_documents_under_way_greets_again() -> None:
    """What it had read is as long as a push may say it: of a crawler, thousands of characters."""
    config = ServerConfig(min_count=1, min_authors=1, min_sources=1)
    long = "a" * 20_000
    patient = CLIENT.model_copy(update={"connect_timeout_s": 60.0})
    with (
        running_server(config, SyncConfig(policy="asp"), dim=MODEL.dim) as server,
        ParameterClient(server.location, node="n0", config=patient) as client,
    ):
        client.hello()
        client.push(Push("n0", 1, 0, offset=long))
        client.peer.drop()
        assert client.hello().offset == long
