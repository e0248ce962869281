"""Rows that nodes sum among themselves: all of them, or those that nearly every block touches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES, TopologyTraits
from embedding.exchange.topology import MeetingSpec, TopologyConfig
from embedding.exchange.transport import Transport
from yeoron_lab.allreduce.meeting import depart
from yeoron_lab.allreduce.reducing import joined
from yeoron_lab.allreduce.rendezvous import rendezvous


@contextmanager
def meet(config: TopologyConfig, names: tuple[str, ...], gpus: int) -> Iterator[MeetingSpec]:
    """A folder where the nodes meet, for the length of a `with` block."""
    nccl = config.backend == "nccl" or (config.backend == "auto" and gpus >= len(names))
    with rendezvous() as folder:
        yield MeetingSpec(folder=folder, names=names, backend="nccl" if nccl else "sockets")


@TOPOLOGIES.register(
    "allreduce", TopologyTraits(sums=True, replicas=True, meet=meet, depart=depart)
)
@TOPOLOGIES.register("hybrid", TopologyTraits(sums=True, meet=meet, depart=depart))
def by_sums(server: Transport, node: JoiningNode) -> Transport:
    """Waits until all nodes have met. allreduce: each node holds a replica of the tables; hybrid:
    of the dense rows, the others go by the server (Kim 2019)."""
    return joined(server, node)
