"""The nodes of a training, watched until all have ended.

Each has a thread here, which starts the two processes that do its work and sees them through.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from embedding.exchange.relay import RELAYS
from embedding.exchange.topology import MeetingSpec, RelaySpec
from embedding.kernel.devices import gpus
from embedding.kernel.errors import ConfigError, PlatformError, YeoronError
from embedding.server.grouping import GROUPS
from embedding.training.request import Progress, TrainProgress, TrainRequest
from embedding.training.survey import CorpusSurvey
from embedding.worker.process.node import run_node
from embedding.worker.spec import CorpusShare, NodeSpec

if TYPE_CHECKING:
    from embedding.server.service import ParameterServer

TRAINING_POOL = "train"


def node_name(node: int) -> str:
    """Name of node 0, 1, … of a training."""
    return f"{TRAINING_POOL}-node-{node}"


@contextmanager
def placed(request: TrainRequest, server: str, survey: CorpusSurvey) -> Iterator[list[NodeSpec]]:
    """The nodes, each with its share of the corpus and what it is told about where others are.

    Where they meet is open for the length of a `with` block.
    """
    topology, nodes = request.topology, request.nodes
    meeting: MeetingSpec | None = None
    relays: Sequence[RelaySpec] = ()
    servers: Sequence[str] = [server]
    with ExitStack() as stack:
        if topology.traits.meet is not None:
            names = tuple(node_name(i) for i in range(nodes))
            usable = 0 if request.server.device == "cpu" else gpus()
            meeting = stack.enter_context(topology.traits.meet(topology, names, usable))
        if (aggregation := RELAYS.first()) is not None:
            relays = stack.enter_context(aggregation.trained(request, server))
        if (groups := GROUPS.first()) is not None:
            servers = stack.enter_context(groups.trained(request, server))
        yield [_spec(request, survey, i, servers, relays, meeting) for i in range(nodes)]


def _spec(
    request: TrainRequest,
    survey: CorpusSurvey,
    node: int,
    servers: Sequence[str],
    relays: Sequence[RelaySpec],
    meeting: MeetingSpec | None,
) -> NodeSpec:
    """Node 0, 1, …; servers: the address of each, the leading one first."""
    groups = len(servers)
    peers = len(range(node % groups, request.nodes, groups))
    exchange = request.exchange
    if request.topology.traits.replicas:
        # Rows are pulled once, when they are new: nothing is gained by rounding them.
        exchange = exchange.model_copy(update={"rows": "float32", "compression": "none"})
    return NodeSpec(
        name=node_name(node),
        server=servers[node % groups],
        corpus=CorpusShare(
            path=str(request.corpus.resolve()),
            index=node,
            count=request.nodes,
            peers=peers if groups > 1 else None,
            epochs=request.epochs,
            tokens=None if request.tokens is None else max(1, request.tokens // request.nodes),
            window=request.dated,
            timezone=request.server.timezone,
            sources=survey.sources,
            unit_lines=request.unit_lines,
            window_characters=survey.characters[node] if survey.characters else (),
        ),
        text=request.text,
        stream=request.stream,
        model=request.model,
        node=request.node_config,
        exchange=exchange,
        topology=request.topology,
        ring=meeting,
        relay=relays[node * len(relays) // request.nodes] if relays else None,
    )


_POLL_SECONDS = 0.05
_SHOW_SECONDS = 0.5
_END_SECONDS = 30.0


class Run:
    """The nodes at work.

    Raises what the first node that failed said, as soon as it did; the others are ended.
    """

    def __init__(
        self,
        request: TrainRequest,
        server: ParameterServer,
        specs: Sequence[NodeSpec],
    ) -> None:
        self._request = request
        self._specs = specs
        self._server = server
        self._stop, self._ended = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: list[Exception] = []
        self._stopwatch = NodeStopwatch(server)

    def finish(self, total: int | None, progress: Progress) -> float:
        """Run every node to its end; seconds between the first pull and the last push.

        total  tokens that will be learnt, None when nobody counted them
        """
        deadline = time.monotonic() + self._request.timeout
        shown = time.monotonic()
        reader = ProgressReader(self._server, total)
        try:
            for spec in self._specs:
                # A window waits for every node that reads a part of the corpus, also a late one.
                if spec.corpus is not None:
                    sources = {spec.corpus.source: {"pending": 1}}
                    self._server.state.report(spec.name, {"sources": sources})
            for spec in self._specs:
                name = spec.name
                thread = threading.Thread(target=self._work, args=[spec], name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
            while not self._over():
                self._ended.wait(_POLL_SECONDS)
                self._stopwatch.look()
                now = time.monotonic()
                if now > deadline:
                    raise PlatformError(
                        f"the training did not end within {self._request.timeout:.0f} s."
                    )
                if now - shown >= _SHOW_SECONDS:
                    shown = now
                    progress(reader.read())
        finally:  # those that still run are told to stop, and their processes waited for
            self._stop.set()
            end = time.monotonic() + _END_SECONDS
            for thread in self._threads:
                thread.join(max(0.0, end - time.monotonic()))
        self._stopwatch.look()
        return self._stopwatch.seconds

    def _work(self, spec: NodeSpec) -> None:
        try:
            run_node(spec, self._stop.is_set)
        except Exception as error:  # noqa: BLE001 - `_over` raises it
            self._failed.append(error)
        finally:
            self._ended.set()

    def _over(self) -> bool:
        """Whether all have ended; raises the error of one that failed."""
        self._ended.clear()
        if self._failed:
            error = self._failed[0]
            # A reason that a node gave in a sentence is about what was asked of it: exit code 2.
            raise ConfigError(str(error)) if type(error) is YeoronError else error
        return not any(thread.is_alive() for thread in self._threads)


class NodeStopwatch:
    """Seconds between the first pull and the last push that the server took."""

    def __init__(self, server: ParameterServer) -> None:
        self._state = server.state
        self._first: float | None = None
        self._last = 0.0
        self._pushes = self._begun = server.state.meters.pushes

    def look(self) -> None:
        """Note what happened since the last look."""
        now = time.monotonic()
        with self._state.lock:
            pulled = any(member.active for member in self._state.machine.board.members.values())
            pushes = self._state.meters.pushes
        if self._first is None and (pulled or pushes > self._begun):
            self._first = now
        if pushes > self._pushes:
            self._pushes, self._last = pushes, now

    @property
    def seconds(self) -> float:
        """At least one look."""
        return max(self._last - (self._first or self._last), _POLL_SECONDS)


class ProgressReader:
    """Reads from the server how far the training is."""

    def __init__(self, server: ParameterServer, total: int | None) -> None:
        self._state = server.state
        self._total = total
        self._loss = (0.0, 0)

    def read(self) -> TrainProgress:
        """The share is that of the tokens, or of the bytes where nobody counted tokens."""
        with self._state.lock:
            meters = self._state.meters
            tokens, rate = meters.tokens, meters.words.value(time.monotonic())
            loss_sum, pairs, replayed = meters.loss_sum, meters.pairs, meters.replayed_tokens
            reports = [report.get("progress") for report in self._state.reports.last.values()]
        before, self._loss = self._loss, (loss_sum, pairs)
        new = pairs - before[1]
        return TrainProgress(
            share=self._share(tokens, reports),
            tokens=tokens,
            words_per_second=rate,
            loss=(loss_sum - before[0]) / new if new else None,
            replayed=replayed,
        )

    def _share(self, tokens: int, reports: Sequence[object]) -> float | None:
        if self._total:
            return min(tokens / self._total, 1.0)
        known = [float(report) for report in reports if isinstance(report, (int, float))]
        return sum(known) / len(known) if known else None
