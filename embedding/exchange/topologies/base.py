"""What a topology makes a node's transport of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Welcome
from embedding.exchange.topologies.traits import TOPOLOGIES, TopologyTraits
from embedding.exchange.topology import MeetingSpec, TopologyConfig
from embedding.exchange.transport import Transport


@dataclass(frozen=True)
class JoiningNode:
    """A node that begins, as its topology sees it.

    incarnation  its process
    meeting      where nodes that sum meet; None: they do not
    welcome      how the server greeted it
    buckets      rows of n-grams, 0 for none
    tokens       of an offset: how much of the node's share it is behind
    stop         set when the node is to end
    """

    name: str
    incarnation: str
    config: TopologyConfig
    exchange: ExchangeConfig
    meeting: MeetingSpec | None
    welcome: Welcome
    buckets: int
    tokens: Callable[[str], int]
    stop: threading.Event


@TOPOLOGIES.register("ps", TopologyTraits())
def by_server(server: Transport, node: JoiningNode) -> Transport:
    """The transport to the server itself."""
    del node
    return server
