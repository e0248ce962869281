"""Rows that nodes sum among themselves: all of them, or those that nearly every block touches."""

from __future__ import annotations

from embedding.exchange.allreduce.reducing import joined
from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES, TopologyTraits
from embedding.exchange.transport import Transport


@TOPOLOGIES.register("allreduce", TopologyTraits(sums=True, replicas=True))
@TOPOLOGIES.register("hybrid", TopologyTraits(sums=True))
def by_sums(server: Transport, node: JoiningNode) -> Transport:
    """Waits until all nodes have met. allreduce: each node holds a replica of the tables; hybrid:
    of the dense rows, the others go by the server (Kim 2019)."""
    return joined(server, node)
