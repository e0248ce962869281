"""How a client's rows reach the place where they lie: the server itself, or shards of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol

from embedding.exchange.codec import encode_pull
from embedding.exchange.compression.sending import Sending
from embedding.exchange.ownrows import OwnRows
from embedding.exchange.pace import ROUND
from embedding.exchange.protocol import (
    Ack,
    PulledRows,
    PullRequest,
    Push,
    Welcome,
)
from embedding.exchange.pushlog import P, PushLog
from embedding.exchange.session import Session
from embedding.kernel.errors import AheadError, RoundError, UnavailableError


class ShardSync:
    """What a client does so that no shard lacks a push that the server knows; here nothing, for
    rows that lie with the server itself. Under the session's lock where the stream is used.
    """

    def bring(self, welcome: Welcome) -> None:
        """Make whole what lies elsewhere, before the server hears of the pushes again."""

    def tend(self) -> None:
        """Look whether anything that was pushed is lost elsewhere, and send it again."""

    def safe(self, durable: int) -> int:
        """The last push that is in a checkpoint everywhere; `durable`, what the server says."""
        return durable

    def wait_durable(self) -> None:
        """The client is about to close: wait a moment until what it pushed is safe."""

    def close(self) -> None:
        """Close what is open; the session is closed."""


class RowPath(Protocol):
    """Rows of one client. Its methods run under the session's lock where they use the stream."""

    @property
    def view(self) -> OwnRows:
        """What the node keeps of the rows."""

    @property
    def links(self) -> ShardSync:
        """Keeps shards in step with the server."""

    def pull(self, request: PullRequest) -> PulledRows:
        """Rows as the policy lets them be read."""

    def spread(self, push: Push) -> None:
        """Send a push's rows to where they lie, before the server hears of it."""

    def rest(self, push: Push) -> Push:
        """What of a push the server itself gets."""


@dataclass(frozen=True)
class PathSetup(Generic[P]):
    """What the path of a client's rows is made from.

    log    pushes, or entries of a server group, that are in some checkpoint not yet
    taken  what to do with an acknowledgement that came aside
    """

    session: Session
    log: PushLog[P]
    taken: Callable[[Ack], None]


MakePath = Callable[[PathSetup[Push], Sending], RowPath]
"""From what compression keeps back, too."""


class DirectRows:
    """Rows lie with the server: they travel on the session's own stream."""

    def __init__(self, setup: PathSetup[Push], feedback: Sending) -> None:
        self._session = setup.session
        self.view = OwnRows(setup.session.config, feedback)
        self.links = ShardSync()

    def pull(self, request: PullRequest) -> PulledRows:
        return pull_from_server(self._session, self.view, request)

    def spread(self, push: Push) -> None:
        """The rows go with the push."""

    def rest(self, push: Push) -> Push:
        return push


def pull_from_server(
    session: Session,
    view: OwnRows,
    request: PullRequest,
    held_back: Callable[[], None] = lambda: None,
) -> PulledRows:
    """Ask the server until the policy lets the pull through.

    held_back  called each time that it does not

    Raises RoundError when a round of all nodes is on, AheadError when the policy waits for this
    node's own push, UnavailableError after `pull_timeout_s`.
    """
    config, asked = session.config, request.rows
    message = encode_pull(request, config.rows)
    began = time.monotonic()
    while True:
        # No push comes between an answer and what is added to it.
        with session.lock:
            answer = session.request(view.asking(message, asked))
            rows = view.read(answer, asked)
        waited = time.monotonic() - began
        if answer.header["status"] != "ok":
            held_back()
        waiting_for = answer.header.get("waiting_for", ())
        if ROUND in waiting_for:
            raise RoundError(f"pull at clock {request.clock}: {ROUND} is on.")
        if session.node in waiting_for:
            raise AheadError(
                f"pull at clock {request.clock}: the policy waits for this node's push."
            )
        if rows is not None:
            session.reached(rows.clock)
            return replace(rows, waited_s=waited)
        if waited > config.pull_timeout_s:
            raise UnavailableError(
                f"pull at clock {request.clock}: the policy held it for {waited:.0f} s; the "
                f"server waits for {answer.header.get('waiting_for')}."
            )
