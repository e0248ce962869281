"""Rows as one node reads them: what the server or its shards send, with what the node knows itself.

Laid over what comes are the rows that the node keeps (`changes.py`), and what compression has kept
back of its pushes, so that a node sees all that it learnt itself.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.exchange.changes import KeptRows, kept_rows
from embedding.exchange.codec import from_message, to_message
from embedding.exchange.compression.halves import widen
from embedding.exchange.compression.sending import Sending
from embedding.exchange.protocol import ROUND, PulledRows, PullRequest, Push, Welcome
from embedding.exchange.session import RowLinks, Session
from embedding.exchange.wire import Message
from embedding.kernel.errors import AheadError, RoundError, UnavailableError
from embedding.kernel.records import IntArray, Table


class NodeRows(ABC):
    """The rows of one node, wherever they lie.

    links  bring what is pushed to where it lies
    kept   what the node keeps of the server's rows, or of each shard's
    """

    links: RowLinks[Push]
    kept: Sequence[KeptRows] = ()

    def __init__(self, session: Session[Push], feedback: Sending) -> None:
        self.session, self.feedback = session, feedback

    @abstractmethod
    def pull(self, request: PullRequest) -> PulledRows:
        """Rows as the policy lets them be read."""

    @abstractmethod
    def learnt(self, push: Push) -> None:
        """The server has taken this push, whose deltas the kept rows follow."""

    def refused(self) -> None:
        """The server refused a push: nothing has changed where rows lie with the server."""
        return

    def alive(self, ids: IntArray) -> None:
        """Words with a row, increasing: nothing is kept of others."""
        self.feedback.keep(ids)
        for kept in self.kept:
            kept.alive(ids)

    def figures(self) -> dict[str, dict[str, Any]]:
        """What is kept, JSON-safe; may be asked for by any thread."""
        config = self.session.config
        return {
            "compression": {
                "kind": config.compression,
                "residual_rows": self.feedback.rows,
                "residual_bytes": self.feedback.nbytes,
            },
            "cache": {
                "kind": config.pulls,
                "bytes": sum(kept.nbytes for kept in self.kept),
                "rows_asked": sum(kept.asked for kept in self.kept),
                "rows_spared": sum(kept.spared for kept in self.kept),
            },
        }

    def ask(
        self, request: PullRequest, kept: KeptRows, held_back: Callable[[], None] = lambda: None
    ) -> PulledRows:
        """Ask the server until the policy lets the pull through.

        held_back  called each time that it does not

        Raises RoundError when a round of all nodes is on, AheadError when the policy waits for this
        node's own push, UnavailableError after `pull_timeout_s`.
        """
        session, config = self.session, self.session.config
        message = to_message(replace(request, half=config.rows == "float16"))
        began = time.monotonic()
        while True:
            # No push comes between an answer and what is added to it.
            with session.lock:
                answer = session.peer.request(kept.asking(message, request.ids))
                rows = self.read(answer, request.ids, kept)
            waited = time.monotonic() - began
            if rows is not None:
                session.reached(rows.clock)
                return replace(rows, waited_s=waited)
            held_back()
            waiting_for = answer.header.get("waiting_for", ())
            if ROUND in waiting_for:
                raise RoundError(f"pull at clock {request.clock}: {ROUND} is on.")
            if session.node in waiting_for:
                raise AheadError(
                    f"pull at clock {request.clock}: the policy waits for this node's push."
                )
            if waited > config.pull_timeout_s:
                raise UnavailableError(
                    f"pull at clock {request.clock}: the policy held it for {waited:.0f} s; the "
                    f"server waits for {answer.header.get('waiting_for')}."
                )

    def read(
        self, answer: Message, asked: Mapping[Table, IntArray], kept: KeptRows
    ) -> PulledRows | None:
        """The rows in an answer, with what this node has learnt and not sent; None: it waits."""
        if answer.header["status"] != "ok":
            return None
        pulled = from_message(PulledRows, answer)
        rows = kept.came(answer, pulled, asked)
        if self.feedback.leaves:
            rows = {table: widen(values) for table, values in rows.items()}
            for table, ids in asked.items():
                self.feedback.add_to(table, ids, rows[table], pulled.sequence)
        elif self.feedback.dtype == "float32":
            # A delta travels in the type of its rows, unless it is told otherwise.
            rows = {t: v if v.dtype == np.float32 else widen(v) for t, v in rows.items()}
        return replace(pulled, rows=rows)


class RowsAtServer(NodeRows):
    """Rows lie with the server: they travel on the session's own stream."""

    def __init__(self, session: Session[Push], feedback: Sending) -> None:
        super().__init__(session, feedback)
        self.links = RowLinks()
        self.kept = [kept_rows(session.config)]
        session.greeted.append(self._greeted)

    def pull(self, request: PullRequest) -> PulledRows:
        return self.ask(request, self.kept[0])

    def learnt(self, push: Push) -> None:
        self.kept[0].learnt(push)

    def _greeted(self, welcome: Welcome) -> Iterable[Message]:
        first = self.session.welcome is None
        self.kept[0].greeted(welcome.epoch, welcome.sequence, first=first)
        return ()


MakeRows = Callable[[Session[Push], Sending], NodeRows]
"""From what compression keeps back, too."""
