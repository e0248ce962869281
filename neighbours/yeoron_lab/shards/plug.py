"""Where rows on shards are plugged in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding.exchange.placement import PLACEMENTS, RowLayout
from embedding.kernel.config import part_of
from embedding.kernel.registry import NoTraits
from yeoron_lab.later import later
from yeoron_lab.settings import ShardSettings
from yeoron_lab.shards.client.columns import columns
from yeoron_lab.shards.client.split import Layout

if TYPE_CHECKING:
    from embedding.training.request import TrainRequest


@PLACEMENTS.register("shards", NoTraits())
class RowsOnProcesses:
    """See RowPlacement."""

    rows = later("yeoron_lab.shards.rows", "ShardedRows")
    running = later("yeoron_lab.shards.sharding", "Shards")
    node_rows = later("yeoron_lab.shards.client.rows", "node_rows")

    @staticmethod
    def layout(config: Any) -> RowLayout:
        settings = part_of(config, ShardSettings)
        return {"shards": settings.shards, "split": settings.split}

    @staticmethod
    def primary(config: Any) -> Any:
        """By columns no node has whole rows, to infer vectors of words from or to add contexts up
        by."""
        if part_of(config, ShardSettings).split == "rows":
            return config
        return config.model_copy(update={"rare_mentions": 0, "usage": False})

    @staticmethod
    def check_request(request: TrainRequest) -> None:
        from embedding.server.compatibility import SHARDS

        settings = part_of(request.server, ShardSettings)
        if settings.split == "columns":
            columns().check_request(request)
        elif settings.shards > 1:
            SHARDS.check(request.sync.policy, f"{settings.shards} shards", ", or 1 shard")

    @staticmethod
    def folders(config: Any, home: Path) -> list[Path]:
        return [home / f"shard-{index}" for index in range(part_of(config, ShardSettings).shards)]

    @staticmethod
    def check_move(was: RowLayout, now: RowLayout) -> None:
        from yeoron_lab.shards.resharding import check_split

        check_split(was["split"], now["split"])

    @staticmethod
    def move(
        folder: Path, into: Path, was: RowLayout, now: RowLayout, *, dim: int, buckets: int
    ) -> None:
        from yeoron_lab.shards.resharding import reshard

        before, after = (Layout(each["shards"], each["split"], dim) for each in (was, now))
        reshard(folder, into, before, after, buckets=buckets)
