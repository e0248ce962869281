"""Where server groups are plugged into a server."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from embedding.kernel.registry import NoTraits
from embedding.server.grouping import GROUPS
from yeoron_lab.groups.leader import Leader, following_config
from yeoron_lab.groups.leading import LedGroups
from yeoron_lab.groups.link import GroupLink
from yeoron_lab.requests import check_server_groups

if TYPE_CHECKING:
    from embedding.training.request import TrainRequest


@GROUPS.register("groups", NoTraits())
class ReplicatedServers:
    """See ServerGroups."""

    following = staticmethod(following_config)
    upstream = Leader
    link = GroupLink
    followers = LedGroups
    check_request = staticmethod(check_server_groups)

    @staticmethod
    def trained(request: TrainRequest, leader: str) -> AbstractContextManager[list[str]]:
        from yeoron_lab.groups.process import following  # a server needs nothing of trainings

        return following(request, leader)
