"""How the processes of a node end: with their parent, and cleanly on SIGTERM."""

from __future__ import annotations

import _thread
import ctypes
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Ask the kernel (Linux) for SIGTERM when the process that started this one is gone."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set; to be called in the main thread of a process."""
    stop = threading.Event()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        # Not in this thread: it may hold the event's lock, or be setting it for an earlier signal.
        _thread.start_new_thread(stop.set, ())

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return stop


def peak_memory(pid: int | None = None) -> int:
    """Most resident memory that this process, or on Linux process `pid`, has had, in bytes.

    Linux hands the peak that getrusage tells on to a process that is started (exec keeps it), so
    that a small child of a large parent would tell its parent's: there the kernel's own mark of
    this address space is read.
    """
    try:
        status = Path(f"/proc/{pid or 'self'}/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:", 1)[1].split(maxsplit=1)[0]) * 1024
    except (OSError, IndexError, ValueError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
