"""How the processes of a node end with their parent, and what they took."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

_KILLED_S = 5.0
"""How long a killed process may take to be gone."""


def end_with_parent() -> None:
    """SIGTERM to this process when the process that asked for it is gone, however that ended.

    Not when its parent in the sense of the kernel ends, which may be a fork server that lives as
    long as this process.
    """
    asker = multiprocessing.parent_process()

    def follow() -> None:
        if asker is not None:
            asker.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, name="parent", daemon=True).start()


def end_process(process: BaseProcess, within_s: float) -> None:
    """Tell a process to end, and kill it where it is not gone in time."""
    if process.is_alive():
        process.terminate()
    process.join(within_s)
    if process.is_alive():
        process.kill()
        process.join(_KILLED_S)
    process.close()


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


def processor_seconds() -> float:
    """Processor time of this process and of all its descendants so far, in seconds."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time() + ended.ru_utime + ended.ru_stime
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            used = child.cpu_times()
            total += used.user + used.system
    return total


def memory_mb(pid: int | None = None) -> dict[str, float]:
    """Memory that a process (this one) and its descendants hold, by what they run, in MB.

    Proportional set size: pages that several processes share are shared out among them. Where the
    system tells no such figure, the resident size.
    """
    sizes: dict[str, float] = {}
    top = psutil.Process(pid)
    for process in (top, *top.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            memory = process.memory_full_info()
            name = "own" if process == top else _program(process)
            size = getattr(memory, "pss", 0) or memory.rss
            sizes[name] = round(sizes.get(name, 0.0) + size / 1e6, 1)
    return sizes


def _program(process: psutil.Process) -> str:
    """`pool_worker` of `python -m embedding.text.pool_worker`; else the program's name."""
    line = process.cmdline()
    return line[2].rpartition(".")[2] if line[1:2] == ["-m"] else process.name()
