"""The settings that tune what the laboratory brings: each class is a part of a section of the core
(`embedding.kernel.config.extended`), read by `part_of(section, Class)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from embedding.exchange.topologies.traits import SERVERS
from embedding.kernel.config import Config, Location


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


class KeepingSettings(Config):
    """Of rows that a node keeps from one pull to the next."""

    pulls: Literal["rows", "changes"] = "rows"
    """What a pull brings: whole rows, or how far each is from what the node has of it, in steps as
    `threshold` writes them (needs cache_bytes; docs/concepts/wire.md)."""

    cache_bytes: int = Field(default=0, ge=0)
    """Memory of a node for rows that it keeps from one pull to the next, so that only those that
    other nodes have changed are sent again, or what changed of them (pulls); 0 keeps none."""

    @model_validator(mode="after")
    def _changes_of_kept_rows(self) -> KeepingSettings:
        if self.pulls == "changes" and not self.cache_bytes:
            raise ValueError(
                "pulls changes with cache_bytes 0: a change is one of a row that the node keeps; "
                "set cache_bytes (256 MiB hold 100,000 rows of each table at dimension 200)"
            )
        return self


class AggregatorSettings(Config):
    """Of aggregators."""

    aggregators: int = Field(default=0, ge=0)
    """ps: aggregators, processes that add up the pushes of the nodes on their host and send the
    sum as one push (two-level KVStore, Chen 2015). Aggregators wait for each other as the policy
    says (SINGA, Ooi 2015). 0: each node pushes for itself."""


class ServersSettings(Config):
    """Of a training with several servers."""

    server_groups: int = Field(default=1, ge=1, le=64)
    """ps: parameter servers, each with a replica of all rows, to which nodes are assigned in turn;
    they exchange what changed every so often, and none waits for another (SINGA, Ooi 2015)."""

    exchange_every_s: float = Field(default=1.0, gt=0, le=3600)
    """Seconds between two exchanges of a server group with the leading one."""

    if TYPE_CHECKING:
        kind: str

    @property
    def name(self) -> str:
        return SERVERS if self.server_groups > 1 else self.kind


class SumSettings(Config):
    """Of nodes that sum rows among themselves."""

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


class WaitSettings(Config):
    """Of nodes that wait for each other."""

    peer_timeout_s: float = Field(default=120.0, gt=0)
    """How long a node waits for another one in an all-reduce; a peer whose process died is noticed
    at once, one that hangs after this time. With aggregators: how long one is waited for."""


class ShardSettings(Config):
    """Of a server whose rows lie on shards."""

    shards: int = Field(default=1, ge=1, le=64)
    """Processes that hold the rows; 1: the server's own. Each of several holds those of its ids,
    and the server's own holds the vocabulary and says in which order rows change
    (docs/concepts/server.md)."""

    split: Literal["rows", "columns"] = "rows"
    """What of the tables a shard holds: the rows of its ids, or some columns of every row. Columns
    are learnt where they lie: nodes send words and one number an example, so that bytes do not
    depend on the dimension (docs/concepts/topologies.md); sgns and cbow only."""

    shards_port: int = Field(default=0, ge=0, le=65535)
    """Port of the first shard, the others have the next ones; 0 takes free ones."""

    def idle(self) -> dict[str, str]:
        alone = self.shards == 1 and self.split == "rows"
        return {"shards_port": "server.shards is 1"} if alone else {}


class GroupConfig(Config):
    """A server's place among server groups (docs/concepts/topologies.md)."""

    INTERNAL: ClassVar = frozenset(("every_s", "rows"))

    leader: Location | None = None
    """Follow this server (grpc://HOST:PORT) and keep a replica of its rows; it is reached with this
    server's token_file and tls_ca. Without it the server leads other groups, or is alone."""

    name: str = Field(default="", max_length=200)
    """Name by which the leader knows this group; it goes only with `leader` (--leader)."""

    every_s: float = Field(default=1.0, gt=0, le=3600)
    """Seconds between two exchanges with the leader; at most half of sync.liveness_timeout_s."""

    rows: Literal["float16", "float32"] = "float16"
    """How rows and what they moved by travel between groups. With float32 all replicas hold the
    same bits once nothing moves any more, with float16 the same up to its rounding."""

    # Constants: a file that sets one is refused.
    # How far an occurrence of a word carries its rows to their point of rest: h of `group_shares`.
    # 0 adds up all that groups moved, as Downpour does.
    curvature: ClassVar = 0.03

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


class GroupSettings(Config):
    """Of a server that is one of several."""

    group: GroupConfig = GroupConfig()
    """This server's place among server groups."""


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
    "exchange": (KeepingSettings, StepSettings, TopShareSettings),
    "topology": (AggregatorSettings, ServersSettings, SumSettings, WaitSettings),
    "server": (ShardSettings, GroupSettings),
    "node": (ColumnSettings,),
    "stream": (ReplaySettings,),
}
"""By section: what an installation with the laboratory has there beside the core's own."""
