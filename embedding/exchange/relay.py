"""How pushes reach the server through a process that adds them up with those of other nodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Push
from embedding.exchange.topology import RelaySpec
from embedding.exchange.wire import Message
from embedding.kernel.registry import NoTraits, Registry

TOGETHER = "together"
"""What a message is called that brings the pushes of a group."""


class Relay(Protocol):
    """A node's line to where the pushes of its group are added up; one thread uses it."""

    def push(self, push: Push, session: int) -> Message | None:
        """The server's answer; None: the push has to go to the server itself.

        That is safe also when it had been sent: the server takes a push once.
        """

    def leave(self) -> None:
        """The group is not to wait for this node; its next push takes part again."""

    def figures(self) -> dict[str, Any]:
        """JSON-safe: how many pushes, rows and bytes went which way."""

    def close(self) -> None:
        """Leave the group; never raises."""


class Aggregation(Protocol):
    """A way of adding pushes up on their way."""

    @staticmethod
    def check_request(request: Any) -> None:
        """ConfigError for what of a `TrainRequest` does not go with the groups that it asks for."""

    @staticmethod
    def trained(request: Any, server: str) -> AbstractContextManager[Sequence[RelaySpec]]:
        """Where each group of nodes of a `TrainRequest` has its pushes added up, in processes that
        live as long as the `with` block; none where it asks for no groups."""

    @staticmethod
    def line(relay: RelaySpec, config: ExchangeConfig) -> Relay:
        """A node's line to such a process."""

    @staticmethod
    def taken(state: Any, message: Message) -> Message:
        """What a server (`ServerState`) answers to pushes of a group; who adds them up is no node
        and greets nobody."""


RELAYS: Registry[type[Aggregation], NoTraits] = Registry("way of adding pushes up", "yeoron.relays")
"""The first is taken; the core has none."""


def needed_relays() -> type[Aggregation]:
    """The way in which pushes are added up; ConfigError where none is installed."""
    return RELAYS.needed("pushes of several nodes in one message: nothing here adds pushes up")
