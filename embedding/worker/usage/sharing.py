"""The other nodes that read a window: what all of them counted, so that they read alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from embedding.exchange import textcounts
from embedding.exchange.codec import check, from_message, to_message
from embedding.exchange.peer import Peer
from embedding.exchange.protocol import Welcome
from embedding.exchange.textcounts import CountsAnswer, ShareCounts, TextCounts
from embedding.exchange.wire import Message

LOOK_S = 0.2
"""Between two questions whether the others are there."""
_KEPT = 2
"""Sums, the latest: one window may be asked for while another is read."""


class Peers:
    """Of one node.

    most_bytes  of a message
    nodes       that share a corpus, with this one; 0: of a stream
    rest        called between two questions while the node waits; returns whether it is to stop
    look_s      seconds between two questions whether the others have handed in
    """

    def __init__(
        self,
        line: Peer,
        most_bytes: int,
        *,
        nodes: int = 0,
        rest: Callable[[], bool] = lambda: True,
        look_s: float = LOOK_S,
    ) -> None:
        self._line = line
        self._most_bytes = most_bytes
        self._nodes = nodes
        self._look_s = look_s
        self.rest = rest
        self._asked: float | None = None
        self._epoch = 0
        self._sums: dict[int, TextCounts | None] = {}

    def ready(self, window: int, counts: Callable[[], TextCounts | None]) -> bool:
        """Whether a window (Unix seconds of its start) can be read now; else ask again later.

        counts  what this node counts in its text; asked for where there are other nodes alone
        """
        if window in self._sums:
            return True
        now = time.monotonic()
        if self._asked is not None and now < self._asked + self._look_s:
            return False
        self._asked = now
        answer = self._ask(window, None)
        if answer.answer == textcounts.SEND and (own := counts()) is not None:
            answer = self._ask(window, own)
        if answer.answer == textcounts.WAIT:
            return False
        self._sums[window] = answer.counts
        for old in list(self._sums)[:-_KEPT]:
            del self._sums[old]
        return True

    def sum(self, window: int) -> TextCounts | None:
        """What all nodes counted; None: there is this one alone, or nobody asked."""
        return self._sums.get(window)

    def greeted(self, welcome: Welcome) -> Iterator[Message]:
        """A server that was restarted does not know the sums by which this node has read."""
        if self._epoch != welcome.epoch:
            for window, counts in list(self._sums.items()):
                yield self._message(window, counts, summed=True)
        self._epoch = welcome.epoch

    def _ask(self, window: int, counts: TextCounts | None) -> CountsAnswer:
        answer = from_message(CountsAnswer, self._line.request(self._message(window, counts)))
        check(answer, "share_counts")
        return answer

    def _message(self, window: int, counts: TextCounts | None, *, summed: bool = False) -> Message:
        most = None if counts is None else textcounts.added_up([counts], self._most_bytes)
        return to_message(ShareCounts(window, self._nodes, most, summed))
