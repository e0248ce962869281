"""What happens in a server by time alone: departures of nodes and complete windows."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence

from embedding.kernel.memory import give_back
from embedding.server.snapshotting.snapshotter import Snapshotter
from embedding.server.state import ServerState

logger = logging.getLogger(__name__)

_TICK_S = 0.5
_FOLLOW_TICKS = 10
_GIVE_BACK_TICKS = 120


class Ticker:
    """A thread that goes on after an error, as nothing else would notice a node that is gone.

    parts  also called, twice a second
    """

    def __init__(
        self, state: ServerState, snapshotter: Snapshotter, parts: Sequence[Callable[[], None]]
    ) -> None:
        self._state = state
        self._snapshotter = snapshotter
        self._parts = parts
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """Begin to end; False when that was asked for before."""
        if self._stop.is_set():
            return False
        self._stop.set()
        return True

    def join(self) -> None:
        """Wait a while for the end."""
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        ticks = itertools.count()
        while not self._stop.wait(_TICK_S):
            try:
                self._tick(next(ticks))
            except Exception:
                logger.exception("the ticker goes on after an error")

    def _tick(self, number: int) -> None:
        self._state.tick()
        with self._state.lock:
            self._state.meters.sample(time.monotonic())
        for part in self._parts:
            part()
        if number % _FOLLOW_TICKS == 0:
            self._state.follow_frequent()
        if number % _GIVE_BACK_TICKS == _GIVE_BACK_TICKS - 1:
            give_back()
        if self._state.config.cut == "watermark":
            for window in self._state.due():
                self._snapshotter.complete(window)
            self._snapshotter.amend_due()
