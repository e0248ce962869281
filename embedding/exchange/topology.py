"""How nodes reach the rows: by the server, by all-reduce, by both, alone or through aggregators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from embedding.exchange.topologies.traits import SERVERS, TOPOLOGIES, TopologyTraits
from embedding.kernel.config import Config


class TopologyConfig(Config):
    """How rows travel (docs/concepts/topologies.md)."""

    kind: Annotated[str, AfterValidator(TOPOLOGIES.check)] = "ps"
    """ps: every row by the parameter server. allreduce: each node holds a replica of the tables,
    and what all nodes moved is summed each block. hybrid: rows that nearly every block touches go
    by all-reduce, the others by the server (Parallax, Kim 2019). Or one that another
    package adds (docs/extending.md)."""

    aggregators: int = Field(default=0, ge=0)
    """ps: aggregators, processes that add up the pushes of the nodes on their host and send the
    sum as one push (two-level KVStore, Chen 2015). Aggregators wait for each other as the policy
    says (SINGA, Ooi 2015). 0: each node pushes for itself."""

    server_groups: int = Field(default=1, ge=1, le=64)
    """ps: parameter servers, each with a replica of all rows, to which nodes are assigned in turn;
    they exchange what changed every so often, and none waits for another (SINGA, Ooi 2015)."""

    exchange_every_s: float = Field(default=1.0, gt=0, le=3600)
    """Seconds between two exchanges of a server group with the leading one."""

    backend: Literal["auto", "sockets", "nccl"] = "auto"
    """What carries an all-reduce: sockets (CPU) or nccl (a GPU for each node); auto takes nccl
    where the tables are on GPUs and there is one for each node."""

    write_back_blocks: int = Field(default=16, ge=1, le=1_000_000)
    """allreduce, hybrid: blocks between two times that the replicas are brought to the server,
    which scores and checkpoints them as of then; they are brought before each new window, at the
    end, and when nodes meet again."""

    rechoose_blocks: int = Field(default=16, ge=1, le=1_000_000)
    """hybrid: blocks between two choices of the rows that go by all-reduce."""

    dense_share: float | None = Field(default=None, gt=0, le=1)
    """hybrid: a row goes by all-reduce when at least this share of all blocks touches it; None
    takes the share from which on that loads the busiest connection less (`density.py`)."""

    peer_timeout_s: float = Field(default=120.0, gt=0)
    """How long a node waits for another one in an all-reduce; a peer whose process died is noticed
    at once, one that hangs after this time. With aggregators: how long one is waited for."""

    @property
    def traits(self) -> TopologyTraits:
        return TOPOLOGIES.traits(self.kind)

    @property
    def name(self) -> str:
        """`kind`, or `servers` where several server groups share the nodes."""
        return SERVERS if self.server_groups > 1 else self.kind


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
