"""Where columns on shards are plugged in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from embedding.kernel.registry import NoTraits
from yeoron_lab.columns.checks import check_column_policy, check_column_request, check_columns
from yeoron_lab.columns.minibatches import Minibatches, decode_minibatches
from yeoron_lab.later import later
from yeoron_lab.shards.client.columns import SHARD_COLUMNS

if TYPE_CHECKING:
    from embedding.exchange.payload import RowDelta
    from embedding.server.flight.shell import Call
    from yeoron_lab.shards.heldrows import HeldRows
    from yeoron_lab.shards.state import ShardState


@SHARD_COLUMNS.register("columns", NoTraits())
class LearntOnShards:
    """See ShardColumns."""

    check_request = staticmethod(check_column_request)
    check_server = staticmethod(check_columns)
    check_policy = staticmethod(check_column_policy)
    decode = staticmethod(decode_minibatches)
    node_rows = later("yeoron_lab.columns.path", "ColumnsOnShards")

    @staticmethod
    def calls(shard: ShardState, who: Callable[[], str]) -> Mapping[str, Call]:
        from yeoron_lab.columns.shard import ColumnCalls

        return ColumnCalls(shard, who).calls()

    @staticmethod
    def moved(rows: HeldRows, block: Minibatches) -> tuple[RowDelta, RowDelta]:
        from yeoron_lab.columns.shard import moved, taken

        return moved(block, *taken(rows, block))
