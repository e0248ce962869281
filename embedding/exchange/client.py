"""A node's client: what was learnt goes to the parameter server once, and rows come back."""

from __future__ import annotations

import threading
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
    asks_of,
)
from embedding.exchange.relay import Relay
from embedding.exchange.rows import MakeRows, RowsAtServer
from embedding.exchange.session import RowLinks, Session
from embedding.exchange.transport import TransportMetrics
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError


class ParameterClient(Session[Push]):
    """A Transport to one parameter server, for one node.

    hello, admit, vocabulary, pull and push share one stream and are called by one thread;
    report, idle, status, cut, configure and checkpoint may be called by any thread at any time.
    When the server is away each call goes on trying (`Peer`); after a restart of the server the
    pushes that it lost are sent again first. RefusedError carries the server's reason; sending the
    same again cannot help.

    rows   wherever they lie; `connect` finds out where
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
        rows: MakeRows = RowsAtServer,
    ) -> None:
        self.feedback = sending(config)
        self.metrics = TransportMetrics()
        self.relay = relay

        def links(session: Session[Push]) -> RowLinks[Push]:
            self.rows = rows(session, self.feedback)
            return self.rows.links

        super().__init__(
            location,
            node=node,
            config=config,
            config_digest=config_digest,
            stop=stop,
            incarnation=incarnation,
            links=links,
            encode=lambda push: [to_message(push)],
        )

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        with self.lock:
            delta = super().vocabulary(since)
            self.rows.alive(delta.alive)
        return delta

    def pull(self, request: PullRequest) -> PulledRows:
        """See Transport; UnavailableError after `pull_timeout_s` of waiting."""
        return self.rows.pull(request)

    def push(self, push: Push, *, rest: bool = False) -> Ack:
        """Send what was learnt; it is applied once, however often it is sent.

        rest  it is what compression had kept back of earlier pushes: nothing of it is kept back
        """
        with self.lock:
            if self.welcome is None:
                self.hello()
            self.make_room()
            sent = self.feedback.encode(push, rest=rest)
            # Through an aggregator a push is part of a sum: the kept rows do not follow it.
            keeps = self.rows.keeps and self.relay is None
            sent = replace(sent, keeps=keeps)
            try:
                self.log.add(sent)
                ack = self.send(sent, self._relayed)
            except RefusedError:
                # Its number is free again. An UnavailableError leaves it in the log: the server may
                # have it, and the next greeting says so.
                self.log.drop_last(sent)
                self.rows.refused()
                self.feedback.undo(sent)
                raise
            if keeps:
                self.rows.learnt(sent)
            if self.log.load > 0.5:
                self.checkpoint(wait=False)
        if not rest:
            self.metrics.block(push.deltas)
            self.metrics.server_rows += sum(len(delta.ids) for delta in push.deltas)
        return ack

    def flush_residuals(self, clock: int, sequence: int) -> Ack | None:
        """Push whole what compression has kept back, from push `sequence` on; None: nothing was."""
        ack = None
        with self.lock:
            while (delta := self.feedback.rest(self.config.max_message_bytes // 2)) is not None:
                ack = self.push(Push(self.node, sequence, clock, (delta,)), rest=True)
                sequence, clock = sequence + 1, ack.clock
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
        status: dict[str, Any] = self.peer.action("status", {})
        return status

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

    def _relayed(self, push: Push) -> Message | None:
        """The answer by the aggregator, where there is one that answers."""
        if self.relay is None or self.welcome is None:
            return None
        return self.relay.push(push, self.welcome.session)
