"""What topologies declare of themselves, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from embedding.kernel.registry import Registry

if TYPE_CHECKING:
    from embedding.exchange.transport import Transport

SERVERS = "servers"
"""Name of `ps` with several server groups."""


@dataclass(frozen=True, kw_only=True)
class TopologyTraits:
    """What a topology does."""

    sums: bool = False
    """Nodes sum what they moved among themselves, past the server; they hear where to meet."""

    replicas: bool = False
    """Every node holds all rows."""

    check_request: Callable[[Any], None] | None = field(default=None, repr=False)
    """ConfigError for what of a `TrainRequest` does not go with it."""

    meet: Callable[..., AbstractContextManager[Any]] | None = None
    """Of a `TopologyConfig`, the names of all nodes, and how many GPUs they may use: the
    `MeetingSpec` that each node is given, open as long as they train."""

    depart: Callable[..., None] | None = None
    """Of a `MeetingSpec`, a node's name and an incarnation: that process has died. Others that
    wait for it are told; it never raises."""

    def contradiction(self) -> str:
        if self.replicas and not self.sums:
            return "replicas go with sums only, which keep them alike"
        if self.sums and self.meet is None:
            return "sums go with meet only, which says where nodes find each other"
        return ""


TOPOLOGIES: Registry[Callable[..., Transport], TopologyTraits] = Registry(
    "topology", "yeoron.topologies", {"ps": "embedding.exchange.topologies.base"}, lab=True
)
"""All topologies: those built in, and those of other packages. Each makes a node's transport of
that to its server and of a `JoiningNode`."""
