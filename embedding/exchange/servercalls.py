"""The calls that every client of a server makes alike: a node's, and a server group's."""

from __future__ import annotations

from collections.abc import Sequence

from embedding.exchange.codec import acknowledged, decode_vocabulary
from embedding.exchange.contributors import Contributors
from embedding.exchange.protocol import Ack, VocabularyDelta
from embedding.exchange.session import Session
from embedding.exchange.wire import Message, text_array
from embedding.kernel.records import IntArray, SnapshotRef, Window


class ServerCalls:
    """Over one session; admit, vocabulary and confirm use its stream, the others do not."""

    session: Session

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        arrays = {"counts": counts} | ({} if contributors is None else contributors.arrays())
        message = Message({"op": "admit"}, arrays, {"words": text_array(words)})
        return self.session.request(message).array("ids", "i8", 1)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        return decode_vocabulary(
            self.session.request(Message({"op": "vocabulary", "since": since}))
        )

    def confirm(self) -> Ack:
        """How far the server is with this client's pushes."""
        return acknowledged(self.session.request(Message({"op": "confirm"})))

    def cut(self, window: Window, *, timeout_s: float = 600.0) -> SnapshotRef:
        """Publish the window's snapshot; the same reference when it was cut before."""
        bounds = {"start": window.start.isoformat(), "end": window.end.isoformat()}
        return SnapshotRef.from_dict(self.session.action("cut", bounds, timeout_s))

    def fence(self, node: str, incarnation: str) -> None:
        """Have the server note that no push of this incarnation of a node is taken any more."""
        self.session.action("fence", {"node": node, "life": incarnation})

    def checkpoint(self, *, wait: bool = True) -> None:
        """Ask for a checkpoint; with `wait` it is complete on return."""
        self.session.action("checkpoint", {"wait": wait})
