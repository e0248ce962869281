"""Where server groups are plugged into a shard, which needs little of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from embedding.exchange.wire import Message
from embedding.kernel.registry import NoTraits
from yeoron_lab.groups.following import FollowingCalls, MovedRows, following_shard
from yeoron_lab.groups.grouped import GroupStream
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import SHARD_GROUPS, ShardState


@SHARD_GROUPS.register("groups", NoTraits())
class ReplicatedShards:
    """See ShardGroups."""

    @staticmethod
    def following(spec: ShardSpec) -> ShardState:
        return following_shard(spec)

    @staticmethod
    def primary_calls(shard: ShardState) -> Mapping[str, Callable[[Message], Message]]:
        moved = shard.moved
        return FollowingCalls(shard, moved).calls() if isinstance(moved, MovedRows) else {}

    @staticmethod
    def conversation(shard: ShardState, who: Callable[[], str]) -> GroupStream:
        return GroupStream(shard, who)
