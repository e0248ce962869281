"""What a gradient process tells whoever sends it text: what the server has, and where to begin.

A node that has learnt its corpus ends once its pushes are safe from a crash of the server: until
then it keeps those that are in no checkpoint and would send them again, after it nobody can.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from embedding.exchange.client import ParameterClient
from embedding.stream.faults import PeerLost, QueueClosed
from embedding.stream.queue import BlockQueue
from embedding.worker.crawling.unacknowledged import Unacknowledged

logger = logging.getLogger(__name__)

DURABLE_POLL_SECONDS = 0.3
_MANY_DOCUMENTS = 4096
"""Documents in no checkpoint, above which one is asked for."""
_LOOK_SECONDS = 0.2
ASK_SECONDS = 5.0
"""How often the checkpoint at the end of a corpus is asked for."""
PATIENCE_SECONDS = 300.0
"""How long a server that answers, but writes no checkpoint, is waited for then."""


class Acknowledgements:
    """To a crawler, or to the reader of a corpus, which goes by offsets alone.

    A sender that is gone gets no answer: a crawler finds its documents unacknowledged and fetches
    them again, a reader begins at the offset that the server has.

    offset       what the server had from the processes before this one
    unacknowledged  documents that the frontier has not marked as done; None for a corpus
    """

    def __init__(
        self,
        queue: BlockQueue,
        client: ParameterClient,
        offset: str,
        unacknowledged: Unacknowledged | None,
    ) -> None:
        self._queue = queue
        self._client = client
        self._offset = offset
        self._unacknowledged = unacknowledged
        self._wanted: dict[str, Any] = {}
        self._last: dict[str, Any] | None = None

    def begin(self, sequence: int, stop: threading.Event) -> None:
        """Tell a crawler what processes before this one had pushed, once none of it can be lost.

        Until then the crawler reads nothing: a server that goes back to a checkpoint without a
        push that nobody can send again tells an older offset, and its documents are read again.

        sequence  the last push of those processes
        """
        if self._unacknowledged is None:
            return
        while self._client.confirmed < sequence:
            self._client.idle()
            self._client.checkpoint(wait=False)
            if self._client.durable() >= sequence or stop.wait(DURABLE_POLL_SECONDS):
                break
        self._report({"durable": 0})

    def read_on(self, block_tokens: int) -> None:
        """Tell a reader where to begin, behind the last block that the server has, and how large
        blocks are."""
        self._report({"block_tokens": block_tokens})

    def want(self, lost: Sequence[tuple[str, str]], since: float | None) -> None:
        """Ask a crawler for text of dead processes, as `Rereading.follow` takes it."""
        wanted = {"lost": [list(text) for text in lost], "since": since}
        if self._unacknowledged is not None and wanted != self._wanted:
            self._wanted = wanted
            if self._last is not None:
                self._report(self._last)

    def learnt(self, keys: tuple[str, ...]) -> None:
        if self._unacknowledged is not None:
            with contextlib.suppress(PeerLost, QueueClosed):
                self._queue.acknowledge(keys)

    def confirm(self, *, ask: bool = False) -> None:
        """Tell the crawler how many documents are in a checkpoint, so that they are done.

        ask  ask the server first how many there are
        """
        unacknowledged = self._unacknowledged
        if unacknowledged is None:
            return
        report = self._queue.latest_report() or {}
        unacknowledged.acknowledge(int(report.get("finished", 0)))
        if report.get("owing") is False:
            unacknowledged.forget_inherited()
        if not unacknowledged.waits:
            return
        if ask:
            self._client.durable()
        if len(unacknowledged) > _MANY_DOCUMENTS:
            self._client.checkpoint(wait=False)
        self._report({"durable": unacknowledged.confirmed(self._client.confirmed)})

    def _report(self, more: dict[str, Any]) -> None:
        self._last = more
        with contextlib.suppress(PeerLost, QueueClosed):
            self._queue.send_report({"offset": self._offset, **self._wanted, **more})


def secure(client: ParameterClient, stop: threading.Event) -> None:
    """Wait until all pushes of this node, also of its earlier processes, are in a checkpoint.

    Where the server keeps none they are as soon as they are applied. Others need not wait for this
    node meanwhile. Returns at once when `stop` is set.
    """
    _, last = client.log.held
    if stop.is_set() or client.durable() >= last:
        return
    client.idle()
    began = time.monotonic()
    asked = -ASK_SECONDS
    while not stop.wait(_LOOK_SECONDS) and client.durable() < last:
        waited = time.monotonic() - began
        if waited > PATIENCE_SECONDS:
            logger.warning("%s: its last pushes came into no checkpoint", client.node)
            return
        if waited - asked >= ASK_SECONDS:
            asked = waited
            client.checkpoint(wait=False)
