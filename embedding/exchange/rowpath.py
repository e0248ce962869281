"""How a client's rows reach the place where they lie: the server itself, or shards of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from embedding.exchange.codec import to_message
from embedding.exchange.compression.sending import Sending
from embedding.exchange.ownrows import OwnRows
from embedding.exchange.pace import ROUND
from embedding.exchange.protocol import PulledRows, PullRequest, Push
from embedding.exchange.session import Path, Session, ShardSync
from embedding.kernel.errors import AheadError, RoundError, UnavailableError


class RowPath(Path[Push], Protocol):
    """Rows of one client. Its methods run under the session's lock where they use the stream."""

    @property
    def view(self) -> OwnRows:
        """What the node keeps of the rows."""

    def pull(self, request: PullRequest) -> PulledRows:
        """Rows as the policy lets them be read."""


ClientSession = Session[Push, RowPath]
"""Of a node that pulls."""

MakePath = Callable[[ClientSession, Sending], RowPath]
"""From what compression keeps back, too."""


class DirectRows:
    """Rows lie with the server: they travel on the session's own stream."""

    def __init__(self, session: ClientSession, feedback: Sending) -> None:
        self._session = session
        self.view = OwnRows(session.config, feedback)
        self.links = ShardSync()

    def pull(self, request: PullRequest) -> PulledRows:
        return pull_from_server(self._session, self.view, request)

    def spread(self, push: Push) -> None:
        """The rows go with the push."""

    def rest(self, push: Push) -> Push:
        return push


def pull_from_server(
    session: ClientSession,
    view: OwnRows,
    request: PullRequest,
    held_back: Callable[[], None] = lambda: None,
) -> PulledRows:
    """Ask the server until the policy lets the pull through.

    held_back  called each time that it does not

    Raises RoundError when a round of all nodes is on, AheadError when the policy waits for this
    node's own push, UnavailableError after `pull_timeout_s`.
    """
    config, asked = session.config, request.ids
    message = to_message(replace(request, half=config.rows == "float16"))
    began = time.monotonic()

    while True:
        # No push comes between an answer and what is added to it.
        with session.lock:
            answer = session.peer.request(view.asking(message, asked))
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
