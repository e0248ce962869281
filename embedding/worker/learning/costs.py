"""What the processes of a node cost: processor time and memory."""

from __future__ import annotations

import contextlib
import resource
import time

import psutil


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
