"""Sums over all nodes: what a ring of nodes can do, whatever carries the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol

import numpy.typing as npt
from pydantic import Field

from embedding.kernel.config import Config
from embedding.kernel.errors import BrokenRingError
from embedding.kernel.records import IntArray

FORM_SECONDS = 30.0
"""How long nodes that have met wait for each other's connections."""


class RingSpec(Config):
    """A node's place among the nodes that all-reduce, for as long as none comes or goes."""

    folder: Path
    """Folder of the rendezvous."""
    rank: int = Field(ge=0)
    """This node, from 0; 0 leads: it brings the tables to the server."""
    size: int = Field(ge=1)
    """Nodes that take part."""
    generation: int = Field(default=0, ge=0)
    """How often the nodes met before."""
    backend: Literal["sockets", "nccl"] = "sockets"
    """What carries the sums."""


class Ring(Protocol):
    """One node among those that all-reduce; all nodes make the same calls in the same order.

    Each call raises BrokenRingError when a peer is gone, or silent for the time given. One thread
    uses it. Sums are bit for bit the same on every node.

    rank, size  this node's place, from 0, among so many
    bytes_sent  by this node
    """

    rank: int
    size: int
    bytes_sent: int

    @property
    def is_root(self) -> bool:
        """Whether this node, the one of rank 0, brings the tables to the server."""

    def gather(self, header: IntArray) -> IntArray:
        """Everybody's header, int64 [size, k] from int64 [k], by rank; also a barrier."""

    def add_up(self, values: npt.NDArray[Any]) -> None:
        """Sum over all nodes, in place; C-contiguous, of one shape and dtype everywhere."""

    def from_leader(self, values: npt.NDArray[Any]) -> None:
        """The leader's values, in place; as `add_up`."""

    def close(self) -> None:
        """Let the others go; never raises."""


def broken(rank: int, size: int, silent_s: float | None = None) -> BrokenRingError:
    """The error of a node whose peer is gone, or was silent for so many seconds."""
    what = "is gone" if silent_s is None else f"was silent for {silent_s:.0f} s"
    return BrokenRingError(f"all-reduce of {size} nodes: a peer of node {rank} {what}.")
