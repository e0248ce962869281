"""Where server groups are plugged into a server."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from embedding.kernel.config import part_of
from embedding.kernel.registry import NoTraits
from embedding.server.config import ServerConfig
from embedding.server.grouping import GROUPS
from yeoron_lab.groups.leader import Leader, following_config
from yeoron_lab.groups.leading import LedGroups
from yeoron_lab.groups.link import GroupLink
from yeoron_lab.requests import check_server_groups
from yeoron_lab.settings import GroupSettings

if TYPE_CHECKING:
    from embedding.training.request import TrainRequest


@GROUPS.register("groups", NoTraits())
class ReplicatedServers:
    """See ServerGroups."""

    @staticmethod
    def follows(config: ServerConfig) -> bool:
        return part_of(config, GroupSettings).group.leader is not None

    following = staticmethod(following_config)
    upstream = Leader
    link = GroupLink
    followers = LedGroups
    check_request = staticmethod(check_server_groups)

    @staticmethod
    def trained(request: TrainRequest, leader: str) -> AbstractContextManager[list[str]]:
        from yeoron_lab.groups.process import following  # a server needs nothing of trainings

        return following(request, leader)
