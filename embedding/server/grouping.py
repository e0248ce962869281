"""Server groups: several parameter servers, each with a replica of all rows, of which one leads
(docs/concepts/topologies.md). What the core asks of them; other packages bring them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from embedding.exchange.protocol import Push, Welcome
from embedding.kernel.records import SnapshotRef, Window
from embedding.kernel.registry import NoTraits, Registry
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Companion, Part
from embedding.server.words.accounting import Accounts
from embedding.server.words.vocabulary import Vocabulary


class Upstream(Protocol):
    """The server upstream gives ids, cuts windows and keeps what is learnt here.

    The lock of the server here guards all calls.
    """

    def check(self, sync: SyncConfig) -> None:
        """ConfigError for settings that do not go with being a replica."""

    def accounts(self, config: ServerConfig, vocabulary: Vocabulary, dim: int) -> Accounts:
        """How pushes are counted here."""

    def welcome(self, own: Welcome) -> Welcome:
        """The answer to a node's greeting, with what holds for the whole model."""

    def words(self, *made_from: Any) -> Any:
        """A `WordAdmission`: how words get their rows here."""

    def released(self, push: Push, after: int) -> None:
        """A push is about to be applied or dropped; `after`: the node's last one before it."""


class LeaderLink(Companion, ABC):
    """The line of a server that follows to the leading group's server; a checkpoint here is one of
    the leader.

    failed  why the group cannot go on, None while it can
    """

    failed: str | None

    @abstractmethod
    def fence(self, node: str, incarnation: str) -> None:
        """Have the leader remember that an incarnation of a node is fenced."""

    @abstractmethod
    def cut(self, window: Window) -> SnapshotRef:
        """Have the leader cut a window, with what this group has read until now."""

    @abstractmethod
    def asks(self, node: str) -> list[Any]:
        """What the leader asks a node to hand in."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The group's own part of the status."""


class ServerGroups(Protocol):
    """What makes servers to groups; `state` is a `ServerState`, which knows this module."""

    @staticmethod
    def follows(config: ServerConfig) -> bool:
        """Whether a server of these settings follows another."""

    @staticmethod
    def following(config: ServerConfig) -> ServerConfig:
        """As a server that follows needs it: what only the leader keeps or cuts is left out."""

    @staticmethod
    def upstream(config: ServerConfig) -> Upstream:
        """The leader as a server that follows sees it; nothing is asked of it yet."""

    @staticmethod
    def link(state: Any, upstream: Upstream, failed: Callable[[], None]) -> LeaderLink:
        """The line to the leader; `failed` is called when the group cannot go on."""

    @staticmethod
    def followers(state: Any) -> Part:
        """The groups that follow the server of this state, none at first."""

    @staticmethod
    def check_request(request: Any) -> None:
        """ConfigError for what of a `TrainRequest` does not go with the groups that it asks for."""

    @staticmethod
    def trained(request: Any, leader: str) -> AbstractContextManager[Sequence[str]]:
        """Where each server of a training (`TrainRequest`) is reached, the leader first, for the
        length of a `with` block; the leader alone where no groups are asked for. A process that
        dies is started again, at the same port.
        """


GROUPS: Registry[type[ServerGroups], NoTraits] = Registry("kind of server groups", "yeoron.groups")
"""A server takes the first; the core has none, and then nothing can follow a server."""


def following(config: ServerConfig) -> type[ServerGroups] | None:
    """How a server of these settings follows another; None: it does not."""
    kind = GROUPS.first()
    return kind if kind is not None and kind.follows(config) else None
