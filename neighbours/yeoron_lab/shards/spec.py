"""What a shard's process must know to start."""

from __future__ import annotations

from pydantic import Field, model_validator

from embedding.kernel.config import part_of
from yeoron_lab.processes import ProcessSpec
from yeoron_lab.settings import ShardSettings
from yeoron_lab.shards.client.split import Layout


class ShardSpec(ProcessSpec):
    """One of `count` shards; `split` says whether each holds rows (id mod `count`) or columns."""

    module = "yeoron_lab.shards.service"
    what = "shard"

    count: int = Field(ge=1)
    """Shards in all."""

    dim: int = Field(ge=1)
    """Columns of a row."""

    buckets: int = Field(default=0, ge=0)
    """Rows of n-grams (fastText) on all shards together."""

    seed: int = 0
    """Seed of the rows' first values."""

    identity: str = ""
    """Of the training: a shard is led only by the primary whose pushes it holds."""

    @property
    def layout(self) -> Layout:
        """What of the tables each shard holds."""
        return Layout(self.count, part_of(self.server, ShardSettings).split, self.dim)

    @property
    def columns(self) -> slice:
        """The columns of a row that this one holds."""
        return self.layout.columns(self.index)

    @model_validator(mode="after")
    def _exists(self) -> ShardSpec:
        if self.index >= self.count:
            raise ValueError(
                f"index {self.index}: of {self.count} shards, the last is {self.count - 1}"
            )
        return self
