"""Where rows on shards are plugged in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding.exchange.sharding import SHARDING, Split
from embedding.kernel.registry import NoTraits
from yeoron_lab.later import later
from yeoron_lab.shards.client.columns import columns
from yeoron_lab.shards.client.split import Layout

if TYPE_CHECKING:
    from embedding.training.request import TrainRequest


@SHARDING.register("shards", NoTraits())
class RowsOnProcesses:
    """See Sharding."""

    rows = later("yeoron_lab.shards.rows", "ShardedRows")
    running = later("yeoron_lab.shards.sharding", "Shards")
    node_rows = later("yeoron_lab.shards.client.rows", "node_rows")

    @staticmethod
    def reshard(
        folder: Path, into: Path, was: Split, now: Split, *, dim: int, buckets: int
    ) -> None:
        from yeoron_lab.shards.resharding import reshard

        reshard(folder, into, Layout(*was, dim), Layout(*now, dim), buckets=buckets)

    @staticmethod
    def training(rows: Any) -> Any:
        return columns().training(rows)

    @staticmethod
    def check_request(request: TrainRequest) -> None:
        from embedding.server.compatibility import SHARDS

        if request.server.split == "columns":
            columns().check_request(request)
        else:
            SHARDS.check(request.sync.policy, f"{request.server.shards} shards", ", or 1 shard")
