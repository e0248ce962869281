"""When the windows wait no longer for a node that went away: once what it pushed is in the books.

Invariant: a window is cut behind the last count of every node that read for it. A policy with a
barrier may hold a node's last pushes back when the node says goodbye. If the node were forgotten
then, the watermark would pass texts that are in those pushes, and their window would be cut
without them; and the pushes, applied later, would make the watermark wait for a node that is gone.
"""

from __future__ import annotations

from embedding.server.ledger.sequence import Ledger
from embedding.server.words.windows import WindowTracker


class Departures:
    """Nodes that went away and that windows wait for still. The server's lock guards it."""

    def __init__(self, ledger: Ledger, tracker: WindowTracker) -> None:
        self._ledger = ledger
        self._tracker = tracker
        self._last: dict[str, int] = {}

    def gone(self, node: str, last: int | None = None) -> None:
        """A node went away.

        last  number of its last push; None: of the last one that was taken here
        """
        self._last[node] = self._ledger.of(node).accepted if last is None else last
        self.advance()

    def back(self, node: str) -> None:
        """It is there again: windows wait for it as before."""
        self._last.pop(node, None)

    def advance(self) -> None:
        """Forget those whose pushes are all in the books by now."""
        for node, last in tuple(self._last.items()):
            if self._ledger.of(node).applied >= last:
                del self._last[node]
                self._tracker.leave(node)
