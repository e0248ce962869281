"""A node: a crawler process and a gradient process side by side, kept alive together.

When one of them dies both are started again with a fresh queue. Nothing acknowledged is lost: the
server has it; what was not acknowledged is still open in the frontier and is fetched again, and the
reader of a corpus goes on behind the last block that the server has (see `Offset`).
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.errors import BehindError, PlatformError, UnavailableError, YeoronError
from embedding.kernel.logs import log_place
from embedding.kernel.private import leave_no_core, write_privately
from embedding.kernel.processes import end_process
from embedding.stream.queue import BlockQueue, StreamError
from embedding.worker.process.forking import (
    OF_A_CORPUS,
    OF_A_STREAM,
    adopt,
    processes,
)
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
STOP_SECONDS = 10.0
SAME_REASON = 3
"""Restarts after which a failure that repeats with the same reason ends the node."""
HEALTHY_SECONDS = 600.0
"""A process that has run so long was healthy: what died before is not counted any more."""
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class NodeOutcome:
    """How a node ended."""

    name: str
    restarts: int
    seconds: float


def run_node(spec: NodeSpec, should_stop: Callable[[], bool]) -> NodeOutcome:
    """Run the two processes until `should_stop()`; raises PlatformError after too many restarts."""
    started = time.monotonic()
    restarts = Restarts(spec.node.restarts)
    while True:
        pair, began = _Pair(spec), time.monotonic()
        try:
            dead = pair.watch(should_stop)
        finally:
            pair.end()
        if dead is None:
            return NodeOutcome(spec.name, restarts.total, time.monotonic() - started)
        if dead.ends:
            raise YeoronError(dead.reason)
        # Nodes that sum their rows go on without a process that has died as soon as they know.
        if spec.ring is not None and (depart := spec.topology.traits.depart) is not None:
            depart(spec.ring, spec.name, str(pair.gradient_pid))
        if why := restarts.refused(dead, time.monotonic() - began):
            raise PlatformError(f"{spec.name}: {why} Its log has more: {log_place()}.")
        logger.warning(
            "%s: the %s process died (%s); starting both again", spec.name, dead.name, dead.reason
        )
        time.sleep(min(2.0 ** min(restarts.together, 5) * 0.25, 8.0))


@dataclass(frozen=True)
class Death:
    """A process that ended before its time.

    ends     starting it again cannot help
    outside  the reason lies outside of the node: it was killed, or the server is away
    """

    name: str
    reason: str
    ends: bool = False
    outside: bool = False


class Restarts:
    """How often a node was started again, and whether it may be once more.

    most      restarts without a healthy while between them
    total     in all
    together  since the node was last healthy
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: Death | None = None
        self._same = 0
        self.total = self.together = 0

    def refused(self, dead: Death, lived: float) -> str:
        """Count a death after `lived` seconds; why the node is not started again, or ""."""
        if lived >= HEALTHY_SECONDS:
            self._last, self.together = None, 0
        self._same = self._same + 1 if dead == self._last else 0
        self._last = dead
        self.together += 1
        died = f"its {dead.name} process died"
        if self._same >= SAME_REASON and not dead.outside:
            return f"{died} {self._same + 1} times with the same reason: {dead.reason}."
        if self.together > self._most:
            return (
                f"{died} ({dead.reason}), and {self._most} restarts (node.restarts) did not help."
            )
        self.total += 1
        return ""


class _Pair:
    """The two processes of a node and the queue between them."""

    def __init__(self, spec: NodeSpec) -> None:
        self.finite = spec.corpus is not None
        targets = OF_A_CORPUS if self.finite else OF_A_STREAM
        context = processes(targets)
        crawler_end, gradient_end = BlockQueue.pair(spec.stream.queue_tokens, context)
        text = spec.model_copy(update={"incarnation": secrets.token_hex(8)}).model_dump_json(
            context=WITH_SECRETS
        )
        self._reasons, reasons = context.Pipe(duplex=False)
        ends = {"crawler": crawler_end, "gradient": gradient_end}
        self.processes: dict[str, BaseProcess] = {
            name: context.Process(
                target=run_stating_errors,
                args=(name, target, text, end, reasons, dict(os.environ)),
                name=f"{spec.name}-{name}",
            )
            for (name, end), target in zip(ends.items(), targets, strict=True)
        }
        for process in self.processes.values():
            process.start()
        self.gradient_pid = self.processes["gradient"].pid
        crawler_end.release()
        gradient_end.release()
        reasons.close()

    def watch(self, should_stop: Callable[[], bool]) -> Death | None:
        """The first process that died, None when told to stop or when all is learnt.

        A reader ends by itself at the end of its corpus, and the gradient process after it.
        """
        while not should_stop():
            for process in self.processes.values():
                process.join(_POLL_SECONDS / 2)
            # Read once: one may end while the other is looked at.
            codes = {name: process.exitcode for name, process in self.processes.items()}
            for name, code in codes.items():
                if code is not None and not (self.finite and code == 0):
                    return self._stated() or _unstated(name, code)
            if None not in codes.values():
                return None
        return None

    def _stated(self) -> Death | None:
        """What the process that died first said of its death."""
        try:
            return Death(*json.loads(self._reasons.recv_bytes())) if self._reasons.poll(0) else None
        except EOFError:
            return None

    def end(self) -> None:
        """End the crawler first, so that the gradient process learns what is already queued."""
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.processes.values():
            end_process(process, max(0.5, deadline - time.monotonic()))
        self._reasons.close()


def _unstated(name: str, code: int) -> Death:
    """The death of a process that could say nothing of it, by its exit code."""
    if code >= 0:
        return Death(name, f"exit code {code}", outside=code == 0)
    killer = signal.Signals(-code)
    return Death(name, f"killed by {killer.name}", outside=killer in _FROM_OUTSIDE)


def run_stating_errors(
    name: str,
    target: str,
    spec: str,
    end: BlockQueue,
    reasons: Connection,
    environment: dict[str, str],
) -> None:
    """Run a process of a node; what ends it is stated before it ends.

    Who trains on a corpus waits for the node and hears it; a stream's goes to the log as well. The
    words of an error that is not ours may quote a text: its type and its place are stated.

    target  module and function, `embedding.worker.corpus.reading:read_forever`
    """

    def state(reason: str, *, ends: bool = False, outside: bool = False) -> None:
        reasons.send_bytes(json.dumps([name, reason, ends, outside]).encode())

    adopt(environment)
    # Where the worker was not started by `yeoron up`.
    leave_no_core()
    write_privately()
    module, _, function = target.partition(":")
    try:
        getattr(import_module(module), function)(spec, end)
    except StreamError:  # the other process is gone, and has its own reason
        raise
    except UnavailableError as error:
        state(str(error), outside=True)
        raise
    except BehindError as error:
        logger.warning("%s", error)
        state(str(error), outside=True)
        raise SystemExit(error.exit_code) from error
    except YeoronError as error:
        if NodeSpec.model_validate_json(spec).corpus is None:
            logger.error("%s", error)
        state(str(error), ends=True)
        raise SystemExit(error.exit_code) from error
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename.rpartition('/embedding/')[2]}, line {frame.lineno}"
        state(f"{type(error).__name__} in {place}")
        raise
