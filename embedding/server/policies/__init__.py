"""Consistency policies: when a delta reaches the tables and when a node may read them.

Each is a pure function of the board (who is at which clock, what is held back), so that all are
tested alike on generated orders of events. `POLICIES` names them; add one by adding a class.
"""

from __future__ import annotations

from embedding.kernel.errors import ConfigError
from embedding.server.config import SyncConfig
from embedding.server.policies.auto import Auto
from embedding.server.policies.base import Policy
from embedding.server.policies.board import Apply, Board, Drop, Instruction, Member, Ticket
from embedding.server.policies.eager import Asp, Easgd, Hogwild, Ssp
from embedding.server.policies.lockstep import Averaging, Backup, Bsp
from embedding.server.policies.sandblaster import Sandblaster

__all__ = [
    "POLICIES",
    "Apply",
    "Board",
    "Drop",
    "Instruction",
    "Member",
    "Policy",
    "Ticket",
    "make_policy",
]

POLICIES: dict[str, type[Policy]] = {
    each.name: each
    for each in (Bsp, Backup, Ssp, Asp, Hogwild, Easgd, Averaging, Sandblaster, Auto)
}


def make_policy(config: SyncConfig) -> Policy:
    """The policy of this name; ConfigError names the accepted ones."""
    if config.policy not in POLICIES:
        raise ConfigError(
            f"policy {config.policy!r}: one of {', '.join(sorted(POLICIES))} is accepted."
        )
    return POLICIES[config.policy](config)
