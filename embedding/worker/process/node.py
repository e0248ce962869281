"""A node: a crawler process and a gradient process side by side, kept alive together.

When one of them dies both are started again with a fresh queue. Nothing acknowledged is lost: the
server has it; what was not acknowledged is still open in the frontier and is fetched again, and the
reader of a corpus goes on behind the last block that the server has (see `offset.py`).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.errors import BehindError, PlatformError, UnavailableError, YeoronError
from embedding.kernel.private import leave_no_core, write_privately
from embedding.stream.faults import StreamError
from embedding.stream.queue import BlockQueue
from embedding.worker.lifetime import end_process
from embedding.worker.process.forking import (
    OF_A_CORPUS,
    OF_A_STREAM,
    adopt,
    current_environment,
    processes,
)
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
STOP_SECONDS = 10.0


@dataclass(frozen=True)
class NodeOutcome:
    """How a node ended."""

    name: str
    restarts: int
    seconds: float


def run_node(spec: NodeSpec, should_stop: Callable[[], bool]) -> NodeOutcome:
    """Run the two processes until `should_stop()`; raises PlatformError after too many restarts."""
    started = time.monotonic()
    restarts = 0
    while True:
        pair = _Pair(spec)
        try:
            dead = pair.watch(should_stop)
        finally:
            pair.end()
        if dead is None:
            return NodeOutcome(spec.name, restarts, time.monotonic() - started)
        if dead.reason:
            raise YeoronError(dead.reason)
        _tell_peers(spec, pair)
        restarts += 1
        if restarts > spec.node.restarts:
            raise PlatformError(
                f"{spec.name}: its {dead.name} process died {restarts} times; the node gives up "
                f"(node.restarts is {spec.node.restarts}). Its log says why it died."
            )
        logger.warning("%s: the %s process died; starting both again", spec.name, dead.name)
        time.sleep(min(2.0 ** min(restarts, 5) * 0.25, 8.0))


def _tell_peers(spec: NodeSpec, pair: _Pair) -> None:
    """Nodes that all-reduce go on without a process that has died as soon as they know."""
    if spec.ring is not None:
        from embedding.exchange.allreduce.meeting import depart

        depart(spec.ring, spec.name, str(pair.gradient_pid))


@dataclass(frozen=True)
class Death:
    """A process that ended before its time; `reason` when starting it again cannot help."""

    name: str
    reason: str = ""


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
                args=(target, text, end, reasons, current_environment()),
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
                    return Death(name, self._reason())
            if None not in codes.values():
                return None
        return None

    def _reason(self) -> str:
        """What a process said before it ended on purpose."""
        try:
            return self._reasons.recv_bytes().decode() if self._reasons.poll(0) else ""
        except EOFError:
            return ""

    def end(self) -> None:
        """End the crawler first, so that the gradient process learns what is already queued."""
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.processes.values():
            end_process(process, max(0.5, deadline - time.monotonic()))
        self._reasons.close()


def run_stating_errors(
    target: str, spec: str, end: BlockQueue, reasons: Connection, environment: dict[str, str]
) -> None:
    """Run a process of a node; an error that no restart can mend is stated before it ends.

    Who trains on a corpus waits for the node and hears it; a stream's goes to the log as well.

    target  module and function, `embedding.worker.corpus.reading:read_forever`
    """
    adopt(environment)
    # Where the worker was not started by `yeoron up`.
    leave_no_core()
    write_privately()
    module, _, name = target.partition(":")
    try:
        getattr(import_module(module), name)(spec, end)
    except (UnavailableError, StreamError):
        raise
    except BehindError as error:
        logging.getLogger(__name__).warning("%s", error)
        raise SystemExit(error.exit_code) from error
    except YeoronError as error:
        if NodeSpec.model_validate_json(spec).corpus is None:
            logger.error("%s", error)
        reasons.send_bytes(str(error).encode())
        raise SystemExit(error.exit_code) from error
