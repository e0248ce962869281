"""A client of the kind that the server's topology needs."""

from __future__ import annotations

import threading

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Welcome
from embedding.exchange.relay import Relay
from embedding.exchange.rowpath import DirectRows, MakePath
from embedding.exchange.shards.columns import columns
from embedding.exchange.shards.rows import RowsOnShards


def connect(
    location: str,
    *,
    node: str,
    config: ExchangeConfig,
    config_digest: str = "",
    stop: threading.Event | None = None,
    incarnation: str = "",
    relay: Relay | None = None,
) -> ParameterClient:
    """A client that has greeted the server, whose rows go where the server says that they lie."""

    def greeted(path: MakePath) -> tuple[ParameterClient, Welcome]:
        client = ParameterClient(
            location,
            node=node,
            config=config,
            config_digest=config_digest,
            stop=stop,
            incarnation=incarnation,
            relay=relay,
            path=path,
        )
        try:
            return client, client.hello()
        except BaseException:
            client.close()
            raise

    client, welcome = greeted(DirectRows)
    if not welcome.shards:
        return client
    # No goodbye in between: the server would take the node for gone, and close windows without it.
    client.drop()
    client.close()
    return greeted(_path_of(welcome))[0]


def _path_of(welcome: Welcome) -> MakePath:
    if welcome.split != "columns":
        return RowsOnShards
    return columns().path()
