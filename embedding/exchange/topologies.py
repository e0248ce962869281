"""What topologies do. They are not open to other packages: a route is chosen in `worker/process`
and its nodes are placed in `training/placing.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TopologyTraits:
    """What a topology does."""

    sums: bool = False
    """Nodes sum what they moved among themselves, past the server."""

    replicas: bool = False
    """Every node holds all rows."""


TOPOLOGIES = {
    "ps": TopologyTraits(),
    "allreduce": TopologyTraits(sums=True, replicas=True),
    "hybrid": TopologyTraits(sums=True),
}
"""All ways that rows travel."""
SERVERS = "servers"
"""Name of `ps` with several server groups."""
