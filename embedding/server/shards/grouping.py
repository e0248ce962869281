"""What shards do for server groups (`embedding/server/grouping.py`); other packages bring it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message
from embedding.kernel.registry import NoTraits, Registry
from embedding.server.shards.spec import ShardSpec
from embedding.server.shards.state import ShardState


class GroupConversation(Protocol):
    """What a group that follows asks of a shard of the leading group.

    speaks  whether a stream is a group's: its bytes are not those of nodes
    """

    speaks: bool

    def calls(self) -> Mapping[str, Callable[[Message], Message]]:
        """Operations by name."""

    def received(self, push: Push, message: Message) -> Push:
        """A push as it came, or the rows of an entry with those that came before it in pieces."""


class ShardGroups(Protocol):
    """What makes shards of a server to those of a group."""

    @staticmethod
    def following(spec: ShardSpec) -> ShardState:
        """A shard of a server that follows: without rows at first."""

    @staticmethod
    def primary_calls(shard: ShardState) -> Mapping[str, Callable[[Message], Message]]:
        """What a primary asks of its shard besides; nothing where its server follows none."""

    @staticmethod
    def conversation(shard: ShardState, who: Callable[[], str]) -> GroupConversation:
        """What a group may ask on one stream; `who`: the group that greeted on it."""


SHARD_GROUPS: Registry[type[ShardGroups], NoTraits] = Registry(
    "kind of shards of server groups", "yeoron.shard_groups", "embedding.server", "SHARD_GROUPS"
)
"""A shard takes the first; the core has none."""
