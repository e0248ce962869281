"""Where server groups are plugged into a server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from embedding.kernel.registry import NoTraits
from embedding.server.figures.metrics import COUNTER, GAUGE, Scrape, by, plain
from embedding.server.flight.shell import Call, Who
from embedding.server.grouping import GROUPS
from embedding.server.state import ServerState
from yeoron_lab.groups.leader import Leader, following_config
from yeoron_lab.groups.leading import GroupCalls, LedGroups
from yeoron_lab.groups.link import GroupLink
from yeoron_lab.groups.replica import LocalReplica, ReplicaRows
from yeoron_lab.groups.shardedreplica import ShardedReplica
from yeoron_lab.requests import check_server_groups
from yeoron_lab.shards.rows import ShardedRows

if TYPE_CHECKING:
    from embedding.training.request import TrainRequest


_GROUP_GAUGES: dict[str, tuple[Any, str]] = {
    "up": (lambda group: int(group["state"] == "up"), "Whether the group is heard of"),
    "lag_seconds": ("lag_s", "Seconds since the group took the changes that it sent last"),
    "waiting_pushes": ("waiting_pushes", "Pushes of its nodes that the leader has not heard of"),
    "waiting_rows": ("waiting_rows", "Rows that moved and that the leader has not heard of"),
    "unconfirmed": ("unconfirmed", "Entries that are in no checkpoint of the leader"),
    "nodes": ("nodes", "Nodes of the group"),
}
_GROUP_COUNTERS: dict[str, tuple[Any, str]] = {
    "entries": ("entries", "Entries applied"),
    "duplicates": ("duplicates", "Entries that had been applied before"),
    "rows_in": ("rows_in", "Changed rows that the group sent"),
    "rows_out": ("rows_out", "Rows that the group fetched"),
    "bytes_in": ("bytes_in", "Bytes received from the group"),
    "bytes_out": ("bytes_out", "Bytes sent to the group"),
}
_FOLLOWING: dict[str, tuple[Any, str]] = {
    "leader_up": (
        lambda following: float(following["state"] == "up"),
        "Whether the leader of this server's group is heard of",
    ),
}


def _groups(shown: Scrape) -> dict[str, Any] | None:
    return {each["group"]: each for each in shown["groups"]} or None


GROUP_FIGURES = (
    *by("group", GAUGE, _GROUP_GAUGES, _groups),
    *by("group", COUNTER, _GROUP_COUNTERS, _groups),
    *plain(GAUGE, _FOLLOWING, "following"),
)
"""Of a server that leads or follows."""


@GROUPS.register("groups", NoTraits())
class ReplicatedServers:
    """See ServerGroups."""

    following = staticmethod(following_config)
    upstream = Leader
    followers = LedGroups
    check_request = staticmethod(check_server_groups)
    figures = GROUP_FIGURES

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

    @staticmethod
    def stream(
        followers: LedGroups, state: ServerState, asks: Callable[[str], list[Any]], who: Who
    ) -> dict[str, Call]:
        return GroupCalls(followers, state, asks, who).calls()
