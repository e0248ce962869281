"""What the reader of a corpus hears from the gradient process beside it."""

from __future__ import annotations

import threading

from embedding.stream.faults import PeerLost
from embedding.stream.queue import BlockQueue
from embedding.worker.corpus.offset import Offset

HEAR_SECONDS = 0.02


class FeedbackChannel:
    """What the gradient process tells its reader: where to begin, and how large blocks are."""

    def __init__(self, queue: BlockQueue, tokens: int, stop: threading.Event) -> None:
        self._queue = queue
        self._tokens = tokens
        self._stop = stop

    def start(self) -> Offset:
        """Waits until the gradient process has asked the server; PeerLost when it is gone."""
        while (report := self._queue.latest_report()) is None:
            if not self._queue.alive or self._stop.wait(HEAR_SECONDS):
                raise PeerLost("queue: the gradient process ended before it said where to begin.")
        return Offset.of(str(report.get("offset", "")))

    def tokens(self) -> int:
        """Tokens wanted in the next block."""
        report = (self._queue.latest_report() or {}).get("block_tokens")
        return report if isinstance(report, int) and report > 0 else self._tokens
