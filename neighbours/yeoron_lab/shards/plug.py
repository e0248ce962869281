"""Where rows on shards are plugged in; each process loads what it uses of it alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embedding.exchange.sharding import SHARDING, Split
from embedding.kernel.registry import NoTraits

if TYPE_CHECKING:
    from embedding.exchange.rowpath import MakePath, RowPath
    from embedding.server.config import ServerConfig
    from embedding.server.figures.metrics import Figure
    from embedding.server.rowstore.interface import RowSetup
    from embedding.training.request import TrainRequest
    from embedding.worker.learning.training import MakeTraining
    from yeoron_lab.shards.rows import ShardedRows
    from yeoron_lab.shards.sharding import Shards


@SHARDING.register("shards", NoTraits())
class RowsOnProcesses:
    """See Sharding."""

    @staticmethod
    def rows(setup: RowSetup) -> ShardedRows:
        from yeoron_lab.shards.rows import ShardedRows

        return ShardedRows(setup)

    @staticmethod
    def running(rows: ShardedRows, config: ServerConfig, *, identity: str) -> Shards:
        from yeoron_lab.shards.sharding import Shards

        return Shards(rows, config, identity=identity)

    @staticmethod
    def path(split: str) -> MakePath:
        from yeoron_lab.shards.client.columns import columns
        from yeoron_lab.shards.client.rows import RowsOnShards

        return columns().path() if split == "columns" else RowsOnShards

    @staticmethod
    def training(path: RowPath) -> MakeTraining:
        from yeoron_lab.shards.client.columns import columns

        return columns().training(path)

    @staticmethod
    def check_request(request: TrainRequest) -> None:
        from embedding.server.compatibility import SHARDS
        from yeoron_lab.shards.client.columns import columns

        if request.server.split == "columns":
            columns().check_request(request)
        else:
            SHARDS.check(request.sync.policy, f"{request.server.shards} shards", ", or 1 shard")

    @staticmethod
    def figures() -> tuple[Figure, ...]:
        from yeoron_lab.shards.metrics import SHARD_FIGURES

        return SHARD_FIGURES

    @staticmethod
    def reshard(
        folder: Path, into: Path, was: Split, now: Split, *, dim: int, buckets: int
    ) -> None:
        from yeoron_lab.shards.client.split import Layout
        from yeoron_lab.shards.resharding import reshard

        reshard(folder, into, Layout(*was, dim), Layout(*now, dim), buckets=buckets)
