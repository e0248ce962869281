"""Rows as one node reads them: what the server or its shards send, with what the node knows itself.

Laid over what comes are the rows that the node keeps from one pull to the next (those that nobody
else has changed do not travel, or of each only how far it is from what the node has of it), and
what compression has kept back of its pushes, so that a node sees all that it learnt itself.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.compression.halves import widen
from embedding.exchange.compression.sending import Sending
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import ROUND, PulledRows, PullRequest, Push, Welcome
from embedding.exchange.session import RowLinks, Session
from embedding.exchange.wire import Message
from embedding.kernel.errors import AheadError, RefusedError, RoundError, UnavailableError
from embedding.kernel.records import IntArray, Table
from embedding.kernel.registry import NoTraits, Registry

Asked = Mapping[Table, IntArray]


class KeptRows:
    """What a node has of the rows of a server, or of a shard; here nothing. Not thread-safe.

    kind           what a pull brings
    keeps          whether anything is kept
    asked, spared  rows that pulls named so far, and those of them that did not travel
    nbytes         memory of the rows that the node has
    """

    kind, keeps = "rows", False
    asked = spared = 0

    @property
    def nbytes(self) -> int:
        return 0

    def greeted(self, epoch: int, sequence: int, *, first: bool) -> None:
        """The other side greeted in this incarnation of it, with the last push that it has taken;
        `first`: nothing was pushed yet."""

    def refused(self) -> None:
        """The server refused a push that others have taken."""

    def alive(self, ids: IntArray) -> None:
        """Words with a row, increasing: no other will be asked for."""

    def asking(self, message: Message, asked: Asked) -> Message:
        """A pull of these rows, with what the node has of them; without any the pull as it is."""
        del asked
        return message

    def came(self, answer: Message, pulled: PulledRows, asked: Asked) -> dict[Table, Any]:
        """Rows [n, dim] in the order in which they were asked for; RefusedError: malformed."""
        del answer
        for table, ids in asked.items():
            if len(pulled.rows.get(table, ())) != len(ids):
                raise RefusedError(f"pull: the answer has not {len(ids)} rows of table {table}.")
        return dict(pulled.rows)

    def learnt(self, push: Push) -> None:
        """The server has taken this push, whose deltas are the node's own."""


class Answering(Protocol):
    """The answer to one pull.

    whole  rows travel as they are, in float16 where the node asks for that
    """

    whole: bool

    def read(
        self,
        tables: Any,
        slots: Callable[[Table, IntArray, str], IntArray],
        node: str,
        incarnation: tuple[int, int],
    ) -> int:
        """Look which rows the node lacks; how many of those that it asks for do not travel.

        Of rows that travel whole it is called under the lock in which they are read.

        tables       the server's `Tables`; slots  of ids in them, for a call of this name
        incarnation  of the server, and the last push of the node that is in the rows
        """

    def message(self, rows: PulledRows) -> Message | None:
        """The answer, from all rows that were asked for; None: these are to be sent, and the node
        begins again from them."""


class KeptByNode:
    """The server's side: what the node of one stream keeps. The stream's thread alone uses it.

    header  where a pull says what its node keeps
    """

    header: ClassVar[str]

    def asked(self, message: Message, ids: Asked) -> Answering:
        """What answers a pull of these rows; RefusedError: malformed."""
        raise NotImplementedError

    def learnt(self, push: Push) -> None:
        """A push was taken; sent again it changes nothing."""


class KeepingRows(Protocol):
    """A way of keeping rows: the node's side, made of its settings.

    compression  the way of writing pushes whose kernels it uses, to be loaded ahead; "": none
    wanted       whether the settings ask for it
    of_stream    a server's side, of a server whose tables' first vectors have this seed
    """

    compression: ClassVar[str]

    @staticmethod
    def wanted(config: ExchangeConfig) -> bool: ...

    @staticmethod
    def of_stream(seed: int) -> KeptByNode: ...

    def __call__(self, config: ExchangeConfig) -> KeptRows: ...


CHANGES: Registry[KeepingRows, NoTraits] = Registry("way of pulling changes", "yeoron.changes")
CACHES: Registry[KeepingRows, NoTraits] = Registry("way of keeping rows", "yeoron.caches")
"""The first of each is asked whether a node's settings want it; the core has none."""


def _kinds() -> list[KeepingRows]:
    return [kind for kind in (CHANGES.first(), CACHES.first()) if kind is not None]


def keeping(config: ExchangeConfig) -> KeepingRows | None:
    """How a node of these settings keeps rows; None: it keeps none."""
    return next((kind for kind in _kinds() if kind.wanted(config)), None)


def kept_rows(config: ExchangeConfig) -> KeptRows:
    """What a node keeps as the settings say."""
    kind = keeping(config)
    return KeptRows() if kind is None else kind(config)


def kept_by_node(seed: int) -> list[KeptByNode]:
    """The server's side of a stream, of each way of keeping rows."""
    return [kind.of_stream(seed) for kind in _kinds()]


def answering(kept: Sequence[KeptByNode], message: Message, ids: Asked) -> Answering | None:
    """What answers a pull of a node that says what it keeps; None: it keeps nothing."""
    for rows in kept:
        if rows.header in message.header:
            return rows.asked(message, ids)
    return None


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

    @property
    def keeps(self) -> bool:
        """Whether anything is kept from one pull to the next."""
        return any(kept.keeps for kept in self.kept)

    def training(self) -> Callable[[Any], Any] | None:
        """A `MakeTraining` where the processes that hold the rows train on them; None: they do
        not."""
        return None

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
                "kind": next((kept.kind for kept in self.kept), "rows"),
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
                session.clock = max(session.clock, rows.clock)
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
