"""How the processes of a node end with their parent, and what they took."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path


def end_with_parent() -> None:
    """SIGTERM to this process when the process that asked for it is gone, however that ended.

    Not when its parent in the sense of the kernel ends, which may be a fork server that lives as
    long as this process.
    """
    asker = multiprocessing.parent_process()
    if asker is not None:
        threading.Thread(target=_follow, args=(asker.join,), name="parent", daemon=True).start()


def _follow(ended: Callable[[], None]) -> None:
    ended()
    os.kill(os.getpid(), signal.SIGTERM)


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
