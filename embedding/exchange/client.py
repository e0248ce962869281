"""A node's client: what was learnt goes to the parameter server once, and rows come back."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from embedding.exchange.codec import to_message
from embedding.exchange.compression.sending import sending
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import (
    Ack,
    Ask,
    PulledRows,
    PullRequest,
    Push,
    VocabularyDelta,
    Welcome,
    asks_of,
)
from embedding.exchange.relay import Relay
from embedding.exchange.rowpath import DirectRows, MakePath, RowPath
from embedding.exchange.session import Session
from embedding.exchange.transport import TransportMetrics
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError


class ParameterClient(Session[Push, RowPath]):
    """A Transport to one parameter server, for one node.

    hello, admit, vocabulary, pull and push share one stream and are called by one thread;
    report, idle, status, cut, configure and checkpoint may be called by any thread at any time.
    When the server is away each call goes on trying (`Peer`); after a restart of the server the
    pushes that it lost are sent again first. RefusedError carries the server's reason; sending the
    same again cannot help.

    path   where rows lie; `connect` finds out which one the server needs
    relay  hands pushes to the aggregator of the node's group; None: each goes to the server
    """

    def __init__(
        self,
        location: str,
        *,
        node: str,
        config: ExchangeConfig,
        config_digest: str = "",
        stop: threading.Event | None = None,
        incarnation: str = "",
        relay: Relay | None = None,
        path: MakePath = DirectRows,
    ) -> None:
        self.feedback = sending(config)
        self.metrics = TransportMetrics()
        self.relay = relay
        super().__init__(
            location,
            node=node,
            config=config,
            config_digest=config_digest,
            stop=stop,
            incarnation=incarnation,
            path=lambda session: path(session, self.feedback),
            encode=lambda push: [to_message(push)],
        )
        self.greeted.append(self._greeted)
        self.rows = self.path.view

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        with self.lock:
            delta = super().vocabulary(since)
            self.rows.alive(delta.alive)
        return delta

    def pull(self, request: PullRequest) -> PulledRows:
        """See Transport; UnavailableError after `pull_timeout_s` of waiting."""
        return self.path.pull(request)

    def push(self, push: Push) -> Ack:
        """Send what was learnt; it is applied once, however often it is sent."""
        with self.lock:
            sent = self.feedback.encode(push)
            try:
                ack = self._sent(sent)
            except RefusedError:
                self.feedback.undo(sent)
                raise
        self.metrics.block(push.deltas)
        self.metrics.server_rows += sum(len(delta.ids) for delta in push.deltas)
        return ack

    def flush_residuals(self, clock: int, sequence: int) -> Ack | None:
        """Push whole what compression has kept back, from push `sequence` on; None: nothing was."""
        ack = None
        with self.lock:
            deltas = self.feedback.drain(self.config.max_message_bytes // 2)
            while deltas:
                try:
                    ack = self._sent(self.feedback.whole(deltas[0], self.node, sequence, clock))
                except RefusedError:
                    self.feedback.restore(deltas)
                    raise
                deltas, sequence, clock = deltas[1:], sequence + 1, ack.clock
        return ack

    @property
    def confirmed(self) -> int:
        """As `durable`, as far as the server has reported it."""
        return self.log.confirmed

    def report(self, report: dict[str, object]) -> list[Ask]:
        """The node's own figures, shown in the server's status; also a heartbeat.

        Returns what this node is asked to hand in.

        Known keys: `sources`: {SOURCE: {"pending": documents found and not learnt yet}} holds the
        watermark; `event_now` (Unix seconds): event time now; `queue`: tokens waiting.
        """
        answer = self.peer.action("report", {"node": self.node, "report": report})
        return asks_of(answer.get("asks") if isinstance(answer, dict) else None)

    def idle(self) -> None:
        """Nothing to learn at the moment: the policy waits for this node no longer.

        The next pull takes part again, at the clock that the others have reached.
        """
        if self.relay is not None:
            with self.lock:
                self.relay.leave()
        self.peer.action("idle", {"node": self.node})

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.peer.action("status", {})
        return found

    def configure(self, **changes: object) -> None:
        """Change the policy or settings of it (`SyncConfig`) while training runs."""
        self.peer.action("configure", dict(changes))

    def finish(self) -> None:
        """Nobody waits for this node's blocks but as the policy says."""

    def figures(self) -> dict[str, Any]:
        return {
            "kind": "ps",
            "rows": {"server": self.metrics.server_rows},
            "density": self.metrics.density(),
            **({} if self.relay is None else self.relay.figures()),
        }

    def close(self) -> None:
        """Say goodbye, unless the stream was dropped, and close the connections."""
        if self.relay is not None:
            with self.lock:
                self.relay.close()
        super().close()

    def __enter__(self) -> ParameterClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _sent(self, push: Push) -> Ack:
        # Through an aggregator a push is part of a sum: the kept rows do not follow it.
        push = replace(push, keeps=self.rows.keeps and self.relay is None)
        try:
            ack = self.keep_and_send(push, self._relayed)
        except RefusedError:
            self.rows.refused()
            raise
        self.rows.taken(push)
        return ack

    def _relayed(self, push: Push) -> Message | None:
        """The answer by the aggregator, where there is one that answers."""
        if self.relay is None or self.welcome is None:
            return None
        return self.relay.push(push, self.welcome.session)

    def _greeted(self, welcome: Welcome) -> Iterable[Message]:
        direct, first = not welcome.shards, self.welcome is None
        self.rows.greeted(welcome.epoch, welcome.sequence, direct=direct, first=first)
        return ()
