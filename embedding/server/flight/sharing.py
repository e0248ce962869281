"""What a node counted in its text, and what all nodes that read a window did."""

from __future__ import annotations

from embedding.exchange.headers import whole
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
        window = whole(header, "window", least=-(10**10), most=10**10, of=SHARE_COUNTS)
        nodes = whole(header, "nodes", of=SHARE_COUNTS)
        counts = read(message)
        with state.lock:
            accounts = state.accounts
            if header.get("summed") is True:
                accounts.shared.fix(window, counts)
                return Message({"status": "ok"})
            readers = accounts.readers.of_window(window)
            # One that has yet to come back to a restarted server may have read by a sum already.
            away = accounts.readers.away(window) & (state.present() | accounts.tracker.expected)
            if nodes:
                readers = awaited = self._behind(window, node, nodes) | away
            else:
                awaited = {*state.wait([window]).readers, *away}
            answer, parts = accounts.shared.answer(window, node, counts, readers, awaited)
        most = state.config.max_message_bytes
        arrays = written(added_up(parts, most)) if parts else {}
        return Message({"status": "ok", "answer": answer}, arrays)

    def _behind(self, window: int, node: str, nodes: int) -> set[str]:
        """Nodes beside `node` that have yet to come to the end of a window (under the lock).

        nodes  that read the corpus; one that never came is waited for by no name
        """
        state, tracker = self._state, self._state.accounts.tracker
        behind = tracker.behind(window, (state.present() | tracker.expected) - {node})
        return behind if len({node, *state.ledger.nodes}) >= nodes else {"", *behind}
