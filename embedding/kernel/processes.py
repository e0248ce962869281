"""Child processes: where they find modules, how they stop, how much memory and time they took."""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Collection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

import psutil

_KILLED_S = 5.0
"""How long a killed process may take to be gone."""


def import_paths() -> dict[str, str]:
    """Variables by which a Python that is started finds modules where this one does, in the same
    order. By itself it would look in the working folder first, whatever lies there."""
    stated = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    folders = dict.fromkeys(map(os.path.abspath, (*stated, *sys.path)))  # "" is one, too
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(folders)}


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


def end_all(processes: Collection[psutil.Process], within_s: float, *, tell: bool = True) -> int:
    """Kill those of some processes that are not gone in time; how many these are.

    tell  tell them to end before
    """
    for process in processes if tell else ():
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=within_s)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=_KILLED_S)
    return len(alive)


def give_back() -> None:
    """Have glibc give back what it keeps for later; nothing where there is another library."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


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


def memory_of(process: psutil.Process) -> int:
    """Proportional set size in bytes: pages that several processes share are shared out among them.

    Where the system tells no such figure, the resident size; 0 of a process that is gone.
    """
    with contextlib.suppress(psutil.Error):
        with contextlib.suppress(psutil.AccessDenied):
            memory = process.memory_full_info()
            return int(getattr(memory, "pss", 0) or memory.rss)
        return int(process.memory_info().rss)
    return 0


def memory_mb(pid: int | None = None) -> dict[str, float]:
    """Memory that a process (this one) and its descendants have, by what they run, in MB."""
    sizes: dict[str, float] = {}
    top = psutil.Process(pid)
    for process in (top, *top.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            name = "own" if process == top else _program(process)
            sizes[name] = round(sizes.get(name, 0.0) + memory_of(process) / 1e6, 1)
    return sizes


def _program(process: psutil.Process) -> str:
    """`pool_worker` of `python -m embedding.text.pool_worker`; else the program's name."""
    line = process.cmdline()
    return line[2].rpartition(".")[2] if line[1:2] == ["-m"] else process.name()


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
