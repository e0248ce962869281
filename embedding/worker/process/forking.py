"""Starts the processes of a node: forked from one that has imported what they need.

The imports of a node's processes take longer than many a training. One process, Python's fork
server, does them once; every other is a fork of it, at once there and sharing its memory. It ends
with the last of those who use it.
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, get_context, resource_tracker
from multiprocessing.context import ForkServerContext, SpawnContext

import psutil

from embedding.kernel.processes import import_paths

Processes = ForkServerContext | SpawnContext

# Named, not imported: the process that starts them must not wait for their imports.
OF_A_CORPUS = (
    "embedding.worker.corpus.reading:read_forever",
    "embedding.worker.process.gradient:learn_forever",
)
OF_A_STREAM = (
    "embedding.worker.crawling.crawling:crawl_forever",
    "embedding.worker.process.gradient:learn_forever",
)
"""What the two processes of a node run."""


UNCOLLECTED, WARMED = "embedding.worker.process.gcfreeze", "embedding.worker.process.warmed"
_STARTING = threading.Lock()


def processes(targets: Sequence[str]) -> Processes:
    """Where to start processes that will run `targets`; returns at once, imports go on beside.

    The first call of a process decides what is imported beforehand. Where nothing is writable
    there is no place for the fork server's socket, and processes are spawned.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return get_context("spawn")
    # The terminal's ^C is for whoever starts them, and ends them; processes inherit the mask. The
    # tracker goes first: when it starts it opens the mask again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        modules = (target.partition(":")[0] for target in targets)
        forkserver.set_forkserver_preload([UNCOLLECTED, *modules, WARMED])
        with _STARTING, _importing_as_here():
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return get_context("forkserver")


@contextmanager
def _importing_as_here() -> Iterator[None]:
    """Have a Python that is started look for modules where this one does."""
    wanted = import_paths()
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def adopt(environment: dict[str, str]) -> None:
    """Begin as a process of one's own: with this environment, and collecting garbage again.

    The fork server has the environment of the moment when it was started, so whoever asks for a
    process hands its own on.
    """
    gc.freeze()
    gc.enable()
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)


def forked(process: psutil.Process) -> bool:
    """Whether a process is a fork of a fork server: one of a node's, none that such a one began."""
    parent, line = process.parent(), process.cmdline()
    of_server = f"from {forkserver.__name__} " in " ".join(line)
    return parent is not None and of_server and parent.cmdline() == line
