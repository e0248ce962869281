"""What topologies declare of themselves, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

    def contradiction(self) -> str:
        """Why these traits cannot all be; empty where they can."""
        if self.replicas and not self.sums:
            return "replicas go with sums only, which keep them alike"
        return ""


TOPOLOGIES: Registry[Callable[..., Transport], TopologyTraits] = Registry(
    "topology", "yeoron.topologies", "embedding.exchange.topologies", "TOPOLOGIES"
)
"""All topologies: those built in, and those of other packages. Each makes a node's transport of
that to its server and of a `JoiningNode`."""
