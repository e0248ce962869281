"""The node's side of the exchange."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import tenacity

from embedding.exchange.batch import ROUND
from embedding.exchange.channel import Channel
from embedding.exchange.codec import (
    acknowledged,
    decode_vocabulary,
    encode_pull,
    encode_push,
)
from embedding.exchange.compression.feedback import Feedback
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.ownrows import OwnRows
from embedding.exchange.protocol import VERSION, Ack, Push, Rows, VocabularyDelta, Welcome
from embedding.exchange.pushlog import PushLog
from embedding.exchange.relay import Relay
from embedding.exchange.retrying import retrying
from embedding.exchange.testimony import Attestation
from embedding.exchange.wire import Message, text_array
from embedding.kernel.errors import (
    AheadError,
    BehindError,
    ExchangeError,
    RefusedError,
    RoundError,
    UnavailableError,
)
from embedding.kernel.records import (
    IntArray,
    ScorePairs,
    SnapshotRef,
    Table,
    Window,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")


class ParameterClient:
    """Talks to one parameter server for one node.

    hello, admit, vocabulary, pull and push share one stream and are called by one thread;
    report, idle, status, cut, configure and checkpoint may be called by any thread at any time.
    When the server is away each call goes on trying for `connect_timeout_s`, or for a moment once
    `stop` is set, and then raises UnavailableError; after a restart of the server the pushes that
    it lost are sent again first. RefusedError carries the server's reason; sending the same again
    cannot help.
    """

    def __init__(
        self,
        location: str,
        *,
        node: str,
        config: ExchangeConfig,
        config_digest: str = "",
        stop: threading.Event | None = None,
        life: str = "",
    ) -> None:
        self.location = location
        self.life = life
        self.node = node
        self.config = config
        self.config_digest = config_digest
        self.log: PushLog[Push] = PushLog(
            max_pushes=config.max_unconfirmed, max_bytes=config.max_unconfirmed_bytes
        )
        self.feedback = Feedback(config)
        self.rows = OwnRows(config, self.feedback)
        self.relay: Relay | None = None
        self.welcome: Welcome | None = None
        self._clock = 0
        self._channel: Channel | None = None
        self._control: Channel | None = None
        self._stop = stop or threading.Event()
        self._stream_lock = threading.RLock()
        self._control_lock = threading.Lock()

    def hello(self) -> Welcome:
        """Greet the server: where this node stands there and what the policy is."""
        return self._retry(self._greet)

    def admit(
        self, words: Sequence[str], counts: IntArray, testimony: Attestation | None = None
    ) -> IntArray:
        """Ids of words (int64 [n]), -1 for one that has not been seen often enough.

        counts     int64 [n] occurrences that are about to be pushed; they are not counted now
        testimony  who used the words; None for those of a corpus
        """
        arrays = {"counts": counts} | ({} if testimony is None else testimony.arrays())
        message = Message({"op": "admit"}, arrays, {"words": text_array(words)})
        return self._request(message).array("ids", "i8", 1)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        """Words admitted, and ids evicted, after version `since`."""
        with self._stream_lock:
            answer = self._request(Message({"op": "vocabulary", "since": since}))
            delta = decode_vocabulary(answer)
            self.rows.alive(delta.alive)
        return delta

    def pull(
        self,
        vectors: IntArray,
        contexts: IntArray,
        *,
        clock: int,
        score: Sequence[ScorePairs] = (),
        grams: IntArray | None = None,
    ) -> Rows:
        """Rows of `in` and of `out`; waits as long as the policy says.

        vectors, contexts: int64 ids; grams: int64 buckets, for fastText alone. `score`, pairs of
        any number of sources, is computed on the rows as they are when the policy lets the pull
        through. UnavailableError after `pull_timeout_s` of waiting.
        """
        message = encode_pull(vectors, contexts, clock, score, self.config.rows, grams)
        tables = zip(Table, (vectors, contexts, grams), strict=True)
        asked = {table: ids for table, ids in tables if ids is not None}
        began = time.monotonic()
        while True:
            # No push comes between an answer and what is added to it.
            with self._stream_lock:
                answer = self._request(self.rows.asking(message, asked))
                rows = self.rows.read(answer, asked)
            waited = time.monotonic() - began
            if answer.header["status"] != "ok":
                self._held_back()
            if ROUND in answer.header.get("waiting_for", ()):
                raise RoundError(f"pull at clock {clock}: {ROUND} is on.")
            if self.node in answer.header.get("waiting_for", ()):
                raise AheadError(f"pull at clock {clock}: the policy waits for this node's push.")
            if rows is not None:
                break
            if waited > self.config.pull_timeout_s:
                raise UnavailableError(
                    f"pull at clock {clock}: the policy held it for {waited:.0f} s; the server "
                    f"waits for {answer.header.get('waiting_for')}."
                )
        self._clock = max(self._clock, rows.clock)
        return replace(rows, waited_s=waited)

    def push(self, push: Push) -> Ack:
        """Send what was learnt; it is applied once, however often it is sent.

        The push is kept as it is sent until it is in a checkpoint; when too many are, a checkpoint
        is asked for and waited for.
        """
        with self._stream_lock:
            sent = self.feedback.encode(push)
            try:
                return self._push(self._marked(sent))
            except RefusedError:
                self.feedback.undo(sent)
                raise

    def batch(self, message: Message) -> Message:
        """One message of a round of L-BFGS (`batch.py`), answered."""
        return self._request(message)

    def settle(self, clock: int, sequence: int) -> Ack | None:
        """Push whole what compression has kept back, from push `sequence` on; None: nothing was."""
        ack = None
        with self._stream_lock:
            deltas = self.feedback.drain(self.config.max_message_bytes // 2)
            while deltas:
                try:
                    sent = self.feedback.whole(deltas[0], self.node, sequence, clock)
                    ack = self._push(self._marked(sent))
                except RefusedError:
                    self.feedback.restore(deltas)
                    raise
                deltas, sequence, clock = deltas[1:], sequence + 1, ack.clock
        return ack

    def durable(self) -> int:
        """The last push of this node that is in a checkpoint."""
        ack = acknowledged(self._request(Message({"op": "confirm"})))
        self._taken(ack)
        return ack.durable

    @property
    def confirmed(self) -> int:
        """As `durable`, as far as the server has told."""
        return self.log.confirmed

    def report(self, report: dict[str, object]) -> int | None:
        """The node's own figures, shown in the server's status; also a sign of life.

        Returns the latest window (Unix seconds of its start) that is complete and waits to be cut.

        Known keys: `sources`: {SOURCE: {"pending": documents found and not learnt yet}} holds the
        watermark; `event_now` (Unix seconds): event time now; `queue`: tokens waiting.
        """
        answer = self._action("report", {"node": self.node, "report": report})
        closing = answer.get("closing") if isinstance(answer, dict) else None
        return closing if isinstance(closing, int) else None

    def idle(self) -> None:
        """Nothing to learn at the moment: the policy waits for this node no longer.

        The next pull takes part again, at the clock that the others have reached.
        """
        if self.relay is not None:
            with self._stream_lock:
                self.relay.leave()
        self._action("idle", {"node": self.node})

    def status(self) -> dict[str, Any]:
        """The server's status, as `/status` gives it."""
        found: dict[str, Any] = self._action("status", {})
        return found

    def cut(self, window: Window, *, timeout_s: float = 600.0) -> SnapshotRef:
        """Publish the window's snapshot; the same reference when it was cut before."""
        bounds = {"start": window.start.isoformat(), "end": window.end.isoformat()}
        return SnapshotRef.from_dict(self._action("cut", bounds, timeout_s))

    def configure(self, **changes: object) -> None:
        """Change the policy or settings of it (`SyncConfig`) while training runs."""
        self._action("configure", dict(changes))

    def checkpoint(self, *, wait: bool = True) -> None:
        """Ask for a checkpoint; with `wait` it is complete on return."""
        self._action("checkpoint", {"wait": wait})

    def close(self) -> None:
        """Say goodbye and close the connections."""
        with self._stream_lock, self._control_lock:
            if self._channel is not None:
                try:
                    self._channel.request(Message({"op": "bye"}), 2.0)
                except ExchangeError:
                    logger.debug("node %s: the server was gone at goodbye", self.node)
            if self.relay is not None:
                self.relay.close()
            for channel in (self._channel, self._control):
                if channel is not None:
                    channel.close()
            self._channel = self._control = None

    def __enter__(self) -> ParameterClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _marked(self, push: Push) -> Push:
        """Through an aggregator a push is part of a sum: the kept rows do not follow it."""
        return replace(push, keeps=self.rows.keeps and self.relay is None)

    def _push(self, push: Push) -> Ack:
        if self.welcome is None:
            self.hello()
        self._make_room()
        self.log.add(push)
        try:
            ack = self._retry(lambda: self._send(push))
        except RefusedError:
            self.log.drop_last()
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
        ack = self._relayed(push)
        if ack is not None:
            return ack
        return acknowledged(self._stream().request(encode_push(self._stripped(push))))

    def _relayed(self, push: Push) -> Ack | None:
        """Through the aggregator of this node's group, if it is in one that answers."""
        if self.relay is None or self.welcome is None:
            return None
        answer = self.relay.push(push, self.welcome.session)
        return None if answer is None else acknowledged(answer)

    def _stripped(self, push: Push) -> Push:
        """What of a push goes to this server: all of it."""
        return push

    def _held_back(self) -> None:
        """The policy holds a pull back; it is asked for again."""

    def _taken(self, ack: Ack) -> None:
        self.log.confirm(ack.durable)
        self._clock = max(self._clock, ack.clock)

    def _request(self, message: Message) -> Message:
        with self._stream_lock:
            return self._retry(lambda: self._stream().request(message))

    def _stream(self) -> Channel:
        """The open stream; greets the server when there is none."""
        if self._channel is None:
            self._greet()
        if self._channel is None:
            raise UnavailableError(f"server {self.location}: the stream was closed.")
        return self._channel

    def _greet(self) -> Welcome:
        with self._stream_lock:
            if self._channel is None:
                self._channel = Channel(self.location, self.config)
            try:
                welcome = self._introduce(self._channel)
            except Exception:
                self._drop_stream()
                raise
            if self.welcome is None:
                self.log.begin(welcome.sequence)
            first, direct = self.welcome is None, not welcome.shards
            self.rows.greeted(welcome.epoch, welcome.sequence, direct=direct, first=first)
            self.welcome = welcome
            self._clock = max(self._clock, welcome.clock)
            return welcome

    def _introduce(self, channel: Channel) -> Welcome:
        header = {
            "op": "hello",
            "version": VERSION,
            "node": self.node,
            "config_digest": self.config_digest,
            "clock": self._clock,
            "life": self.life,
        }
        channel.open()
        answer = channel.request(Message(header)).header
        welcome = Welcome.from_dict(answer)
        known = self.welcome
        if known is not None and welcome.shared is not None and welcome.epoch != known.epoch:
            raise BehindError(
                f"node {self.node}: the server was restarted, and with it the tables that this "
                "node shares went back to its checkpoint; start the node anew."
            )
        self._resend(channel, welcome)
        return welcome

    def _drop_stream(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _resend(self, channel: Channel, welcome: Welcome) -> None:
        """Send again what the server does not know: it was restarted, or the stream broke."""
        self.log.confirm(welcome.durable)
        lost = self.log.after(welcome.sequence)
        if lost:
            logger.info("node %s: sending %d pushes again", self.node, len(lost))
        for push in lost:
            self._taken(acknowledged(channel.request(encode_push(self._stripped(push)))))

    def _action(self, name: str, body: dict[str, Any], timeout_s: float | None = None) -> Any:
        def call() -> Any:
            with self._control_lock:
                if self._control is None:
                    self._control = Channel(self.location, self.config)
                control = self._control
            return control.action(name, body, timeout_s)

        return self._retry(call, stream=False)

    def _retry(self, call: Callable[[], T], *, stream: bool = True) -> T:
        """Run `call`, again with back-off while the server is away."""

        def reset(state: tenacity.RetryCallState) -> None:
            if stream:
                self._drop_stream()
            if state.attempt_number == 1:
                error = state.outcome.exception() if state.outcome is not None else None
                logger.warning("node %s: %s Trying again.", self.node, error)

        try:
            return retrying(self.config, self._stop, reset)(call)
        except UnavailableError:
            # Whoever asks again greets the server: it may have been started anew meanwhile.
            if stream:
                self._drop_stream()
            raise
