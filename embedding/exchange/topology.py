"""How nodes reach the rows: by the server, or as another package brings it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from embedding.exchange.topologies.traits import TOPOLOGIES, TopologyTraits
from embedding.kernel.config import Config, extended


@extended("topology")
class TopologyConfig(Config):
    """How rows travel (docs/concepts/topologies.md)."""

    kind: Annotated[str, AfterValidator(TOPOLOGIES.check)] = "ps"
    """ps: every row by the parameter server. allreduce: each node holds a replica of the tables,
    and what all nodes moved is summed each block. hybrid: rows that nearly every block touches go
    by all-reduce, the others by the server (Parallax, Kim 2019). Or one that another
    package adds (docs/extending.md)."""

    @property
    def traits(self) -> TopologyTraits:
        return TOPOLOGIES.traits(self.kind)

    @property
    def name(self) -> str:
        """What trainings are compared by."""
        return self.kind


class MeetingSpec(Config):
    """Where nodes that sum their rows meet, at the start and whenever one of them comes or goes."""

    folder: Path
    """Folder of the rendezvous, of this user alone."""
    names: tuple[str, ...] = Field(min_length=1)
    """All nodes."""
    backend: Literal["sockets", "nccl"] = "sockets"
    """What carries the sums."""

    @property
    def size(self) -> int:
        return len(self.names)


class RelaySpec(Config):
    """Where the pushes of a group of nodes are added up."""

    location: str
    """Address of the process that does it."""
    group: str
    """Name of the group."""
    wait_s: float = Field(gt=0)
    """Seconds for which that process waits for a node of the group that does not come."""
