"""What a node of a corpus says when it leaves a window, and what it is given to read again."""

from __future__ import annotations

from embedding.exchange.headers import whole
from embedding.exchange.pasttexts import END, LEAVE_WINDOW, read, written
from embedding.exchange.wire import Message
from embedding.server.flight.shell import Call, Who
from embedding.server.state import ServerState
from embedding.server.words.peertexts import Readers


class LeavingCalls:
    """See Extra; `who` says which node greeted on the stream."""

    def __init__(self, state: ServerState, who: Who) -> None:
        self._state = state
        self._who = who

    def calls(self) -> dict[str, Call]:
        return {LEAVE_WINDOW: self.leave}

    def leave(self, message: Message) -> Message:
        """The windows that this node is to read again, and what all nodes remember of them."""
        header, state, (node, _) = message.header, self._state, self._who()
        window, until = (
            whole(header, name, least=-END, most=END, of=LEAVE_WINDOW)
            for name in ("window", "until")
        )
        count, keep = (whole(header, name, least=1) for name in ("nodes", "keep"))
        enough = whole(header, "enough")
        handed = read(message)
        with state.lock:
            peers = state.accounts.peers
            closed = state.accounts.cut | state.accounts.usage.windows()
            due = peers.leave(node, window, until, handed, self._readers(count), keep, closed)
            texts = peers.texts(due[-1], enough) if due else {}
        described, arrays = written(texts)
        return Message(
            {"status": "ok", "close": [[start] for start in due], "past": described}, arrays
        )

    def _readers(self, count: int) -> Readers:
        """Those of this server (under the lock)."""
        members, tracker = self._state.machine.board.members, self._state.accounts.tracker
        heard = {name: float("-inf") for name, one in members.items() if one.present}
        for source in tracker.sources.values():
            for node, published in source.heard.items():
                if node in heard:
                    heard[node] = max(heard[node], published)
        reached = {
            node: tracker.window(int(at)).start.timestamp() if at > float("-inf") else at
            for node, at in heard.items()
        }
        return Readers(count, tuple(members), reached)
