"""Rows that nearly every block touches by all-reduce, the others by the server (Kim 2019)."""

from __future__ import annotations

from embedding.exchange.allreduce.reducing import joined
from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES, TopologyTraits
from embedding.exchange.transport import Transport


@TOPOLOGIES.register("hybrid", TopologyTraits(sums=True))
def by_both(server: Transport, node: JoiningNode) -> Transport:
    """Waits until all nodes have met."""
    return joined(server, node)
