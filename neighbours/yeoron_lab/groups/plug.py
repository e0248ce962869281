"""Where server groups are plugged into a server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from embedding.kernel.registry import NoTraits
from embedding.server.grouping import GROUPS
from embedding.server.state import ServerState
from yeoron_lab.groups.leader import Leader, following_config
from yeoron_lab.groups.leading import LedGroups
from yeoron_lab.groups.link import GroupLink
from yeoron_lab.groups.replica import LocalReplica, ReplicaRows
from yeoron_lab.groups.shardedreplica import ShardedReplica
from yeoron_lab.requests import check_server_groups
from yeoron_lab.shards.rows import ShardedRows

if TYPE_CHECKING:
    from embedding.training.request import TrainRequest


@GROUPS.register("groups", NoTraits())
class ReplicatedServers:
    """See ServerGroups."""

    following = staticmethod(following_config)
    upstream = Leader
    followers = LedGroups
    check_request = staticmethod(check_server_groups)

    @staticmethod
    def link(state: ServerState, upstream: Leader, failed: Callable[[], None]) -> GroupLink:
        rows = state.rows
        replica: ReplicaRows
        if isinstance(rows, ShardedRows):
            most = state.config.max_message_bytes
            replica = ShardedReplica(rows, state.vocabulary, state.ledger, state.lock, most)
        else:
            replica = LocalReplica(rows.tables, state.vocabulary, state.lock)
        return GroupLink(state, upstream, replica, failed)

    @staticmethod
    def trained(request: TrainRequest, leader: str) -> AbstractContextManager[list[str]]:
        from yeoron_lab.groups.process import following  # a server needs nothing of trainings

        return following(request, leader)
