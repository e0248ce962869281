"""Every row by all-reduce: each node holds a replica of the tables."""

from __future__ import annotations

from embedding.exchange.allreduce.reducing import joined
from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES, TopologyTraits
from embedding.exchange.transport import Transport


@TOPOLOGIES.register("allreduce", TopologyTraits(sums=True, replicas=True))
def by_sums(server: Transport, node: JoiningNode) -> Transport:
    """Waits until all nodes have met."""
    return joined(server, node)
