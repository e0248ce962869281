"""A node's client: what was learnt goes to the parameter server once, and rows come back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from embedding.exchange.channel import Channel
from embedding.exchange.codec import acknowledged, encode_push
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
from embedding.exchange.pushlog import PushLog
from embedding.exchange.relay import Relay
from embedding.exchange.rowpath import DirectRows, MakePath, PathSetup
from embedding.exchange.session import ServerCalls, Session
from embedding.exchange.transport import TransportMetrics
from embedding.kernel.errors import RefusedError, UnavailableError

logger = logging.getLogger(__name__)


class ParameterClient(ServerCalls):
    """A Transport to one parameter server, for one node.

    hello, admit, vocabulary, pull and push share one stream and are called by one thread;
    report, idle, status, cut, configure and checkpoint may be called by any thread at any time.
    When the server is away each call goes on trying (`Session`); after a restart of the server the
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
        self.location = location
        self.node = node
        self.config = config
        self.log: PushLog[Push] = PushLog(
            max_pushes=config.max_unconfirmed, max_bytes=config.max_unconfirmed_bytes
        )
        self.feedback = sending(config)
        self.metrics = TransportMetrics()
        self.relay = relay
        self.session = Session(
            location,
            node=node,
            config=config,
            config_digest=config_digest,
            stop=stop,
            incarnation=incarnation,
            resume=self._resume,
        )
        self.greeted: list[Callable[[Channel, Welcome], None]] = []
        self.path = path(PathSetup(self.session, self.log, self._taken), self.feedback)
        self.rows = self.path.view

    @property
    def welcome(self) -> Welcome | None:
        return self.session.welcome

    def hello(self) -> Welcome:
        return self.session.hello()

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        with self.session.lock:
            delta = super().vocabulary(since)
            self.rows.alive(delta.alive)
        return delta

    def pull(self, request: PullRequest) -> PulledRows:
        """See Transport; UnavailableError after `pull_timeout_s` of waiting."""
        return self.path.pull(request)

    def push(self, push: Push) -> Ack:
        """Send what was learnt; it is applied once, however often it is sent.

        The push is kept as it is sent until it is in a checkpoint; when too many are, a checkpoint
        is asked for and waited for.
        """
        with self.session.lock:
            sent = self.feedback.encode(push)
            try:
                ack = self._logged(sent)
            except RefusedError:
                self.feedback.undo(sent)
                raise
        self.metrics.block(push.deltas)
        self.metrics.server_rows += sum(len(delta.ids) for delta in push.deltas)
        return ack

    def flush_residuals(self, clock: int, sequence: int) -> Ack | None:
        """Push whole what compression has kept back, from push `sequence` on; None: nothing was."""
        ack = None
        with self.session.lock:
            deltas = self.feedback.drain(self.config.max_message_bytes // 2)
            while deltas:
                try:
                    sent = self.feedback.whole(deltas[0], self.node, sequence, clock)
                    ack = self._logged(sent)
                except RefusedError:
                    self.feedback.restore(deltas)
                    raise
                deltas, sequence, clock = deltas[1:], sequence + 1, ack.clock
        return ack

    def durable(self) -> int:
        """The last push of this node that is in a checkpoint, wherever its rows lie."""
        with self.session.lock:
            self.path.links.tend()
            ack = self.confirm()
            self._taken(ack)
            return self.path.links.safe(ack.durable)

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
        answer = self.session.action("report", {"node": self.node, "report": report})
        return asks_of(answer.get("asks") if isinstance(answer, dict) else None)

    def idle(self) -> None:
        """Nothing to learn at the moment: the policy waits for this node no longer.

        The next pull takes part again, at the clock that the others have reached.
        """
        if self.relay is not None:
            with self.session.lock:
                self.relay.leave()
        self.session.action("idle", {"node": self.node})

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.session.action("status", {})
        return found

    def configure(self, **changes: object) -> None:
        """Change the policy or settings of it (`SyncConfig`) while training runs."""
        self.session.action("configure", dict(changes))

    def finish(self) -> None:
        """Nobody waits for this node's blocks but as the policy says."""

    def figures(self) -> dict[str, Any]:
        return {
            "kind": "ps",
            "rows": {"server": self.metrics.server_rows},
            "density": self.metrics.density(),
            **({} if self.relay is None else self.relay.figures()),
        }

    def drop(self) -> None:
        """End the stream without a goodbye, as a process that dies: this node will be back.

        Windows that it reads for go on waiting for it.
        """
        with self.session.lock:
            self.session.drop()

    def close(self) -> None:
        """Say goodbye, unless the stream was dropped, and close the connections."""
        self.path.links.wait_durable()
        with self.session.lock:
            if self.relay is not None:
                self.relay.close()
            self.session.close()
        self.path.links.close()

    def __enter__(self) -> ParameterClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _logged(self, push: Push) -> Ack:
        """Keep a push, then send it: from here on it reaches the server, whatever breaks."""
        # Through an aggregator a push is part of a sum: the kept rows do not follow it.
        push = replace(push, keeps=self.rows.keeps and self.relay is None)
        if self.welcome is None:
            self.hello()
        self._make_room()
        self.log.add(push)
        try:
            ack = self.session.retry(lambda: self._send(push))
        except RefusedError:
            # Its number is free again. An UnavailableError leaves it in the log: the server may
            # have it, and the next greeting says so.
            self.log.drop_last()
            self.rows.refused()
            raise
        self._taken(ack)
        self.rows.taken(push)
        if self.log.load > 0.5:
            self.checkpoint(wait=False)
        return ack

    def _make_room(self) -> None:
        """Wait for a checkpoint when the log of unconfirmed pushes is full."""
        if self.log.load < 1.0:
            return
        self.checkpoint(wait=True)
        self.durable()
        if self.log.load >= 1.0:
            raise UnavailableError(
                f"node {self.node}: {len(self.log)} pushes ({self.log.nbytes} bytes) are in no "
                "checkpoint and the server's last checkpoint did not confirm one."
            )

    def _send(self, push: Push) -> Ack:
        """Through the aggregator where there is one that answers; else rows first, then the rest.

        The server orders pushes and says to shards when to apply theirs. So it must not hear of one
        whose rows are not there yet: the node could die in between, and nobody could bring them.
        """
        if self.relay is not None and self.welcome is not None:
            answer = self.relay.push(push, self.welcome.session)
            if answer is not None:
                return acknowledged(answer)
        self.path.spread(push)
        return self._push_on(self.session.stream(), push)

    def _push_on(self, channel: Channel, push: Push) -> Ack:
        return acknowledged(channel.request(encode_push(self.path.rest(push))))

    def _taken(self, ack: Ack) -> None:
        self.log.confirm(self.path.links.safe(ack.durable))
        self.session.reached(ack.clock)

    def _resume(self, channel: Channel, welcome: Welcome, first: bool) -> None:
        """Send again what the server does not know: it was restarted, or the stream broke.

        The server takes a push whose number it knows for a duplicate, and one that leaves a gap not
        at all. So all after the last that it knows are sent, in order, before any new one.
        """
        self.path.links.bring(welcome)
        for tell in self.greeted:
            tell(channel, welcome)
        self.log.confirm(welcome.durable)
        lost = self.log.after(welcome.sequence)
        if lost:
            logger.info("node %s: sending %d pushes again", self.node, len(lost))
        for push in lost:
            self._taken(self._push_on(channel, push))
        if first:
            self.log.begin(welcome.sequence)
        self.rows.greeted(welcome.epoch, welcome.sequence, direct=not welcome.shards, first=first)
