"""How pushes reach the server through a process that adds them up with those of other nodes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message
from embedding.kernel.registry import NoTraits, Registry

TOGETHER = "together"
"""What a message is called that brings the pushes of a group."""


class Relay(Protocol):
    """A node's line to the aggregator of its group; one thread uses it."""

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
        """ConfigError for what of a `TrainRequest` does not go with it."""

    @staticmethod
    def running(
        server: str, config: ExchangeConfig, *, group: str, wait_s: float
    ) -> AbstractContextManager[str]:
        """The address of an aggregator in a process of its own, for the length of a `with` block.

        wait_s  how long pushes wait for a node of the group that does not come
        """

    @staticmethod
    def line(location: str, *, group: str, config: ExchangeConfig, timeout_s: float) -> Relay:
        """A node's line to an aggregator that waits `timeout_s` for the others."""

    @staticmethod
    def taken(state: Any, message: Message) -> Message:
        """What a server (`ServerState`) answers to pushes of a group; its aggregator is no node
        and greets nobody."""


RELAYS: Registry[type[Aggregation], NoTraits] = Registry("way of adding pushes up", "yeoron.relays")
"""A training with aggregators takes the first; the core has none."""


def aggregation() -> type[Aggregation]:
    """The way in which pushes are added up; ConfigError where none is installed."""
    return RELAYS.needed("topology.aggregators: nothing here adds pushes up", "0")
