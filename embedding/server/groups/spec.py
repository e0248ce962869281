"""What the process of a group that follows must know to start."""

from __future__ import annotations

from pydantic import Field

from embedding.server.config import SyncConfig
from embedding.server.processes import ProcessSpec


class GroupSpec(ProcessSpec):
    """One of the groups of a training; `server.group` names its leader."""

    module = "groupprocess"
    what = "server group"

    sync: SyncConfig = SyncConfig()
    """How the group's own nodes are kept in step."""

    dim: int = Field(ge=1)
    """Columns of a row."""

    seed: int = 0
    """Seed of the rows' first values."""

    buckets: int = Field(default=0, ge=0)
    """Rows for n-grams."""

    biases: int = Field(default=0, ge=0)
    """Columns that are no part of a vector."""
