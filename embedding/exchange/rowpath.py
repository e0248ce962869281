"""How a client's rows reach the place where they lie: the server itself, or shards of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from embedding.exchange.batch import ROUND
from embedding.exchange.codec import encode_pull
from embedding.exchange.compression.feedback import Feedback
from embedding.exchange.links import Links, NoLinks
from embedding.exchange.ownrows import OwnRows
from embedding.exchange.protocol import Ack, PulledRows, PullRequest, Push
from embedding.exchange.pushlog import PushLog
from embedding.exchange.session import Session
from embedding.kernel.errors import AheadError, RoundError, UnavailableError
from embedding.kernel.records import IntArray


class RowView(Protocol):
    """What a node keeps of the rows, wherever they lie."""

    @property
    def keeps(self) -> bool:
        """Whether rows are kept from one pull to the next."""
        ...

    def greeted(self, epoch: int, sequence: int, *, direct: bool, first: bool) -> None:
        """The server greeted in this incarnation of it; see `OwnRows`."""
        ...

    def taken(self, push: Push) -> None:
        """The server has taken this push."""
        ...

    def refused(self) -> None:
        """The server refused a push."""
        ...

    def alive(self, ids: IntArray) -> None:
        """Words with a row, increasing: nothing is held of others."""
        ...

    def figures(self) -> dict[str, dict[str, Any]]:
        """What is held, JSON-safe; may be asked for by any thread."""
        ...


class RowPath(Protocol):
    """Rows of one client. Its methods run under the session's lock where they use the stream."""

    @property
    def view(self) -> RowView:
        """What the node keeps of the rows."""
        ...

    @property
    def links(self) -> Links:
        """Where else pushes go."""
        ...

    def pull(self, request: PullRequest) -> PulledRows:
        """Rows as the policy lets them be read."""
        ...

    def spread(self, push: Push) -> None:
        """Send a push's rows to where they lie, before the server hears of it."""
        ...

    def rest(self, push: Push) -> Push:
        """What of a push the server itself gets."""
        ...


MakePath = Callable[[Session, PushLog[Push], Feedback, Callable[[Ack], None]], RowPath]
"""(session, pushes in no checkpoint, what compression keeps back, what to do with an
acknowledgement that came aside) → the path."""


class DirectRows:
    """Rows lie with the server: they travel on the session's own stream."""

    def __init__(
        self,
        session: Session,
        log: PushLog[Push],
        feedback: Feedback,
        taken: Callable[[Ack], None],
    ) -> None:
        del log, taken
        self.view = OwnRows(session.config, feedback)
        self.links = NoLinks()
        self._session = session

    def pull(self, request: PullRequest) -> PulledRows:
        """See RowPath."""
        return pull_from_server(self._session, self.view, request)

    def spread(self, push: Push) -> None:
        """The rows go with the push."""

    def rest(self, push: Push) -> Push:
        """All of it."""
        return push


def pull_from_server(
    session: Session,
    view: OwnRows,
    request: PullRequest,
    held_back: Callable[[], None] = lambda: None,
) -> PulledRows:
    """Ask the server until the policy lets the pull through.

    held_back  called each time that it does not

    Raises RoundError when a round of L-BFGS is on, AheadError when the policy waits for this node's
    own push, UnavailableError after `pull_timeout_s`.
    """
    config, asked = session.config, request.by_table()
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
