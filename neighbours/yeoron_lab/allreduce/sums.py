"""Rows that nodes sum among themselves: all of them, or those that nearly every block touches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from embedding.exchange.compression.base import entry_type
from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES, TopologyTraits
from embedding.exchange.topology import MeetingSpec, TopologyConfig
from embedding.exchange.transport import Transport
from embedding.kernel.config import part_of
from yeoron_lab.allreduce.density import threshold
from yeoron_lab.allreduce.meeting import Meeting, depart
from yeoron_lab.allreduce.reducing import ReducingTransport
from yeoron_lab.allreduce.rendezvous import rendezvous
from yeoron_lab.requests import check_sums
from yeoron_lab.settings import SumSettings, WaitSettings

ROW_BYTES = {"float16": 2, "float32": 4}
"""Of an entry of a row that is pulled."""


@contextmanager
def meet(config: TopologyConfig, names: tuple[str, ...], gpus: int) -> Iterator[MeetingSpec]:
    """A folder where the nodes meet, for the length of a `with` block."""
    backend = part_of(config, SumSettings).backend
    nccl = backend == "nccl" or (backend == "auto" and gpus >= len(names))
    with rendezvous() as folder:
        yield MeetingSpec(folder=folder, names=names, backend="nccl" if nccl else "sockets")


@TOPOLOGIES.register(
    "allreduce",
    TopologyTraits(sums=True, replicas=True, check_request=check_sums, meet=meet, depart=depart),
)
@TOPOLOGIES.register(
    "hybrid", TopologyTraits(sums=True, check_request=check_sums, meet=meet, depart=depart)
)
def by_sums(server: Transport, node: JoiningNode) -> Transport:
    """Waits until all nodes have met. allreduce: each node holds a replica of the tables; hybrid:
    of the dense rows, the others go by the server (Kim 2019)."""
    if node.meeting is None:
        return server
    least = part_of(node.config, SumSettings).dense_share
    if least is None:
        least = threshold(node.meeting.size, ROW_BYTES[node.exchange.rows])
    welcome = node.welcome
    return ReducingTransport(
        server,
        Meeting(
            node.meeting,
            name=node.name,
            incarnation=node.incarnation,
            timeout_s=part_of(node.config, WaitSettings).peer_timeout_s,
            stop=node.stop,
        ),
        node.config,
        dim=welcome.dim,
        tokens=node.tokens,
        buckets=node.buckets,
        sequence=welcome.sequence,
        offset=welcome.offset,
        half=entry_type(node.exchange) == "float16",
        least=least,
    )
