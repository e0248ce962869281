"""What a node of a stream counted in its text, and what all of them did."""

from __future__ import annotations

from embedding.exchange.headers import whole
from embedding.exchange.pasttexts import END
from embedding.exchange.textcounts import SHARE_COUNTS, added_up, read, written
from embedding.exchange.wire import Message
from embedding.server.flight.shell import Call, Who
from embedding.server.state import ServerState


class SharingCalls:
    """See Extra; `who` says which node greeted on the stream."""

    def __init__(self, state: ServerState, who: Who) -> None:
        self._state = state
        self._who = who

    def calls(self) -> dict[str, Call]:
        return {SHARE_COUNTS: self.share}

    def share(self, message: Message) -> Message:
        """What this node is to do before it reads a window, and the sum if it is to take that."""
        header, state, (node, _) = message.header, self._state, self._who()
        window = whole(header, "window", least=-END, most=END, of=SHARE_COUNTS)
        counts = read(message)
        with state.lock:
            shared, readers = state.accounts.shared, state.accounts.readers
            if counts is not None:
                shared.hand_in(window, node, counts)
            awaited = () if header.get("overdue") is True else state.wait([window]).readers
            answer, parts = shared.answer(window, node, readers.of_window(window), awaited)
        arrays = written(added_up(parts)) if parts else {}
        return Message({"status": "ok", "answer": answer}, arrays)
