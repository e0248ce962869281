"""A node's line to the aggregator of its group, by which its pushes reach the server added up."""

from __future__ import annotations

import logging
from typing import Any

from embedding.exchange.codec import to_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.peer import Peer
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import ExchangeError, RefusedError

logger = logging.getLogger(__name__)

GRACE_S = 10.0
"""How much longer than the aggregator waits for the others of a group a node waits for it."""


class AggregatorLine:
    """A `Relay` that hands pushes to an aggregator.

    sent, direct  pushes that went by it, and those that it sent back or never answered
    """

    def __init__(
        self, location: str, *, group: str, config: ExchangeConfig, timeout_s: float
    ) -> None:
        self.group = group
        self.sent = 0
        self.direct = 0
        self.rows = 0
        self.nbytes = 0
        self.lost = False
        self._timeout_s = timeout_s + GRACE_S
        self._peer = Peer(location, config)

    def push(self, push: Push, session: int) -> Message | None:
        """The server's answer; None: the push has to go to the server itself.

        That is safe also when the aggregator had sent it: the server takes a push once.
        """
        message = to_message(push, session=session)
        answer = None if self.lost else self._ask(message, self._timeout_s)
        if answer is None or answer.header.get("direct"):
            self.direct += 1
            return None
        self.sent += 1
        self.rows += sum(len(delta.ids) for delta in push.deltas)
        self.nbytes += push.nbytes
        return answer

    def leave(self) -> None:
        if self._peer.is_open:
            self._ask(Message({"op": "idle"}))

    def figures(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "aggregated_pushes": self.sent,
            "direct_pushes": self.direct,
            "rows": {"host": self.rows},
            "bytes": {"host": self.nbytes},
        }

    def close(self) -> None:
        self._peer.close()

    def _ask(self, message: Message, timeout_s: float | None = None) -> Message | None:
        """None: the aggregator is gone or failed, and is given up."""
        try:
            return self._peer.once(lambda channel: channel.request(message, timeout_s))
        except RefusedError:
            raise
        except ExchangeError as error:
            logger.warning(
                "the aggregator of %s is given up; its nodes push to the server themselves: %s",
                *(self.group, error),
            )
            self.lost = True
            self.close()
            return None
