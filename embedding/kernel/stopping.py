"""How a process is told to stop: an event that signals set, which no signal can slip past."""

from __future__ import annotations

import _thread
import signal
import threading
from types import FrameType

_LOOK_S = 0.5


class Stop(threading.Event):
    """An event whose `wait` in the main thread notices every signal.

    Python runs a signal's handler in the main thread, between two instructions. A signal that
    arrives after the last of them and before the lock is waited for, or that the kernel hands to
    another thread, does not wake that lock: waiting without an end would last for ever.
    """

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, or for `timeout` seconds; whether it is set."""
        if timeout is not None:
            return super().wait(timeout)
        while not super().wait(_LOOK_S):
            pass
        return True


def stop_on_signals(*, terminal: bool = False) -> Stop:
    """A `Stop` that SIGTERM sets; to be called in the main thread of a process.

    terminal   ^C (SIGINT) sets it too; else ^C is the business of whoever started this process
    """
    stop = Stop()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        # Not in this thread: it may hold the event's lock, or be setting it for an earlier signal.
        _thread.start_new_thread(stop.set, ())

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle if terminal else signal.SIG_IGN)
    return stop
