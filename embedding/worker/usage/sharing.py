"""The other nodes of a stream: what all of them counted, so that they read alike."""

from __future__ import annotations

import time
from collections.abc import Callable

from embedding.exchange.session import Requests
from embedding.exchange.textcounts import READY, SEND, SHARE_COUNTS, WAIT, TextCounts, read, written
from embedding.exchange.wire import Message

LOOK_S = 0.5
"""Between two questions whether the others are there."""


class StreamPeers:
    """Of one node.

    look_s  seconds between two questions whether the others have handed in
    """

    def __init__(self, line: Requests, look_s: float = LOOK_S) -> None:
        self._line = line
        self._look_s = look_s
        self._asked: float | None = None
        self._sums: dict[int, TextCounts | None] = {}

    def ready(self, window: int, overdue: bool, counts: Callable[[], TextCounts | None]) -> bool:
        """Whether a window (Unix seconds of its start) can be read now; else ask again later.

        overdue  the server waits for the others no longer
        counts   what this node counts in its text; asked for where there are other nodes alone
        """
        if window in self._sums:
            return True
        now = time.monotonic()
        if self._asked is not None and now < self._asked + self._look_s:
            return False
        self._asked = now
        answer = self._ask(window, overdue, None)
        if answer.header["answer"] == SEND and (own := counts()) is not None:
            answer = self._ask(window, overdue, own)
        if answer.header["answer"] == WAIT:
            return False
        self._sums = {window: read(answer) if answer.header["answer"] == READY else None}
        return True

    def sum(self, window: int) -> TextCounts | None:
        """What all nodes counted; None: there is this one alone, or nobody asked."""
        return self._sums.get(window)

    def _ask(self, window: int, overdue: bool, counts: TextCounts | None) -> Message:
        header = {"op": SHARE_COUNTS, "window": window, "overdue": overdue}
        return self._line.request(Message(header, {} if counts is None else written(counts)))
