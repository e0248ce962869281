"""The settings that tune what the laboratory brings: each class is a part of a section of the core
(`embedding.kernel.config.extended`), read by `part_of(section, Class)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from embedding.kernel.config import Config


class BackupSettings(Config):
    """Of the policy backup."""

    ONLY: ClassVar = ("backup",)

    backups: int = Field(default=1, ge=0)
    """backup: how many nodes may be late. What they push of a clock that the others have closed is
    dropped and counted (Chen 2016)."""


class PacedSettings(Config):
    """Of the policies under which nodes train on copies of their own."""

    ONLY: ClassVar = ("easgd", "averaging")

    tau: int = Field(default=2, ge=1, le=1024)
    """easgd, averaging: blocks that a node trains on copies of its own before it exchanges."""

    # Constants: a file that sets one is refused.
    # easgd: β of Zhang 2015; a row that all n nodes train all the time moves by α = β/n of the
    # difference.
    elasticity: ClassVar = 0.9


class RoundSettings(Config):
    """Of the policy sandblaster."""

    ONLY: ClassVar = ("sandblaster",)
    REMOVED: ClassVar[Mapping[str, str]] = {
        "lbfgs_history": "leave it out: 10 pairs of step and change of gradient are kept",
    }

    lbfgs_every: int = Field(default=4, ge=1, le=1_000_000)
    """sandblaster: blocks of a node between two rounds of L-BFGS, and before the first."""

    lbfgs_batch_tokens: int = Field(default=50_000, ge=64, le=100_000_000)
    """sandblaster: tokens that each node draws from what it remembers for a round."""

    lbfgs_iterations: int = Field(default=10, ge=1, le=10_000)
    """sandblaster: steps of L-BFGS in a round, at most."""

    # Constants: a file that sets one is refused.
    lbfgs_portion_tokens: ClassVar = (
        2_000  # Tokens of a portion, which one node computes at a time.
    )
    # Nodes that may compute a portion once more at the end of a batch; the first to answer wins
    # (Dean 2012).
    lbfgs_copies: ClassVar = 1
    # How far a round may carry rows: the loss has ‖x - x₀‖²/(2·reach·rate) added, as if it were one
    # implicit gradient step of so many learning rates; 0 adds nothing.
    lbfgs_reach: ClassVar = 1.0


class AutoSettings(Config):
    """Of the policy auto: constants, so a file that sets one is refused."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "auto_margin": "leave it out: the way back begins a quarter below a threshold",
    }

    # Coefficient of variation of the sources' token rates above which bsp gives way to ssp.
    auto_alike: ClassVar = 0.25
    auto_apart: ClassVar = 0.4  # The one above which ssp gives way to asp; at least auto_alike.
    auto_stay_s: ClassVar = 10.0  # Seconds that a policy rules at least.


class StepSettings(Config):
    """Of what travels in whole multiples of a step."""

    INTERNAL: ClassVar = frozenset(("directions",))

    threshold: float = Field(default=0.005, gt=0, le=1e6)
    """threshold and pulled changes: the least step; entries that moved less are kept back until
    they have."""

    relative_threshold: float = Field(default=1.0, ge=0, le=100)
    """threshold and pulled changes: the step of a row as a multiple of the root mean square of what
    there is to send of it; 0 takes `threshold` for every row (Strom 2015)."""

    directions: int = Field(default=16, ge=0, le=1024)
    """threshold and pulled changes: the most principal directions of a message's rows that are sent
    along, so that most of what there is to send lies in a few entries; 0: entries as they are."""


class TopShareSettings(Config):
    """Of the compression topk."""

    top_share: float = Field(default=0.05, gt=0, le=1)
    """topk: the share of a block's entries that is sent."""


class ShardSettings(Config):
    """Of a server whose rows lie on shards."""

    shards_port: int = Field(default=0, ge=0, le=65535)
    """Port of the first shard, the others have the next ones; 0 takes free ones."""


class ColumnSettings(Config):
    """Of nodes that learn columns on shards: a constant, so a file that sets it is refused."""

    # Pairs whose scores are asked for at once, and whose steps are summed. More take fewer
    # messages, and learn from older rows.
    minibatch: ClassVar = 512


class ReplaySettings(Config):
    """Of replay by loss: constants, so a file that sets one is refused."""

    replay_alpha: ClassVar = 0.6  # Exponent of the priorities; 0 draws uniformly.
    replay_beta: ClassVar = 0.4  # Exponent of the importance weights; 1 is unbiased.


ADDED = {
    "sync": (BackupSettings, PacedSettings, RoundSettings, AutoSettings),
    "exchange": (StepSettings, TopShareSettings),
    "server": (ShardSettings,),
    "node": (ColumnSettings,),
    "stream": (ReplaySettings,),
}
"""By section: what an installation with the laboratory has there beside the core's own."""
