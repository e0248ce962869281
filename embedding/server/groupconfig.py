"""Configuration of a server group."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from embedding.exchange.config import Location
from embedding.kernel.config import Config
from embedding.kernel.errors import ConfigError


class GroupConfig(Config):
    """A server's place among server groups (docs/concepts/topologies.md)."""

    leader: Location | None = None
    """Address of the leading group's server, whose replica this server is; None: it leads, or is
    alone. It is reached with this server's token_file and tls_ca."""

    name: str = Field(default="", max_length=200)
    """Name of a group that follows; the leader knows it by that."""

    every_s: float = Field(default=1.0, gt=0, le=3600)
    """Seconds between two exchanges with the leader; at most half of sync.liveness_timeout_s."""

    rows: Literal["float16", "float32"] = "float16"
    """How rows and what they moved by travel between groups. With float32 all replicas hold the
    same bits once nothing moves any more, with float16 the same up to its rounding."""

    curvature: float = Field(default=0.03, ge=0, le=10)
    """How far an occurrence of a word carries its rows to their point of rest: h of
    `group_shares`. 0 adds up all that groups moved, as Downpour does."""

    @model_validator(mode="after")
    def _named(self) -> GroupConfig:
        if self.leader is not None and not self.name.strip():
            raise ValueError(
                f"leader {self.leader} without a name: the leader knows its groups by name; give "
                "one (group.name, --group)"
            )
        if self.leader is None and self.name:
            raise ValueError(
                f"name {self.name} without a leader: only a group that follows has a name; give "
                "the leader's address (group.leader, --leader) or no name"
            )
        return self


def check_pace(every_s: float, liveness_timeout_s: float, whose: str = "") -> None:
    """ConfigError where a leader would take a group for gone between two exchanges."""
    if 2 * every_s > liveness_timeout_s:
        raise ConfigError(
            f"an exchange every {every_s:g} s with {whose}liveness_timeout_s "
            f"{liveness_timeout_s:g}: a leader takes a group that is silent for so long for gone, "
            f"and cuts windows without it; at most {liveness_timeout_s / 2:g} s is accepted."
        )
