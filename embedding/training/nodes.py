"""The nodes of a training, watched until all have ended.

Each has a thread here, which starts the two processes that do its work and sees them through.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from embedding.kernel.errors import ConfigError, PlatformError, YeoronError
from embedding.training.request import Progress, TrainProgress, TrainRequest
from embedding.training.survey import CorpusSurvey
from embedding.worker.process.node import run_node
from embedding.worker.spec import CorpusShare, NodeSpec

if TYPE_CHECKING:
    from embedding.server.service import ParameterServer
from contextlib import ExitStack

from embedding.exchange.relay import aggregation
from embedding.exchange.topology import MeetingSpec
from embedding.kernel.devices import gpus
from embedding.server.grouping import needed_groups

TRAINING_POOL = "train"


def node_name(node: int) -> str:
    """Name of node 0, 1, … of a training."""
    return f"{TRAINING_POOL}-node-{node}"


class Placement:
    """What each node is told about where the others are.

    aggregators  the address of each group's, for topology ps
    servers      the address of each server group's, the leading one first
    """

    def __init__(
        self,
        request: TrainRequest,
        meeting: MeetingSpec | None = None,
        aggregators: Sequence[str] = (),
        servers: Sequence[str] = (),
    ) -> None:
        self._request = request
        self._meeting = meeting
        self._aggregators = aggregators
        self.servers = servers

    def put(self, spec: NodeSpec, node: int) -> NodeSpec:
        """The specification of node 0, 1, … with its place."""
        topology = self._request.topology
        placed: dict[str, Any] = {"topology": topology, "ring": self._meeting}
        if self._aggregators:
            group = node * len(self._aggregators) // self._request.nodes
            placed |= {"group": f"group-{group}", "aggregator": self._aggregators[group]}
        if len(self.servers) > 1:
            groups = len(self.servers)
            placed["server"] = self.servers[node % groups]
            if spec.corpus is not None:
                peers = len(range(node % groups, self._request.nodes, groups))
                placed["corpus"] = spec.corpus.model_copy(update={"peers": peers})
        if topology.traits.replicas:
            # Rows are pulled once, when they are new: nothing is gained by rounding them.
            whole = {"rows": "float32", "compression": "none"}
            placed["exchange"] = spec.exchange.model_copy(update=whole)
        return spec.model_copy(update=placed)


@contextmanager
def placed(request: TrainRequest, server: str) -> Iterator[Placement]:
    """The meeting places of the nodes, open for the length of a `with` block."""
    topology = request.topology
    with ExitStack() as stack:
        if topology.traits.meet is not None:
            names = tuple(node_name(i) for i in range(request.nodes))
            usable = 0 if request.server.device == "cpu" else gpus()
            meeting = stack.enter_context(topology.traits.meet(topology, names, usable))
            yield Placement(request, meeting)
        else:
            aggregators = _aggregators(request, server, stack)
            servers: Sequence[str] = [server]
            if topology.server_groups > 1:
                groups = needed_groups("server_groups")
                servers = stack.enter_context(groups.trained(request, server))
            yield Placement(request, aggregators=aggregators, servers=servers)


def _aggregators(request: TrainRequest, server: str, stack: ExitStack) -> list[str]:
    config, wait_s = request.exchange, request.topology.peer_timeout_s
    return [
        stack.enter_context(
            aggregation().running(server, config, group=f"group-{i}", wait_s=wait_s)
        )
        for i in range(request.topology.aggregators)
    ]


_POLL_SECONDS = 0.05
_SHOW_SECONDS = 0.5
_END_SECONDS = 30.0


def node_specs(request: TrainRequest, location: str, survey: CorpusSurvey) -> list[NodeSpec]:
    """The nodes, each with its share of the corpus and what is known of it."""
    share = None if request.tokens is None else max(1, request.tokens // request.nodes)
    return [
        NodeSpec(
            name=node_name(i),
            server=location,
            corpus=CorpusShare(
                path=str(request.corpus.resolve()),
                index=i,
                count=request.nodes,
                epochs=request.epochs,
                tokens=share,
                window=request.dated,
                timezone=request.server.timezone,
                sources=survey.sources,
                unit_lines=request.unit_lines,
                window_characters=survey.characters[i] if survey.characters else (),
            ),
            text=request.text,
            stream=request.stream,
            model=request.model,
            node=request.node_config,
            exchange=request.exchange,
        )
        for i in range(request.nodes)
    ]


class Run:
    """The nodes at work.

    Raises what the first node that failed said, as soon as it did; the others are ended.
    """

    def __init__(
        self,
        request: TrainRequest,
        server: ParameterServer,
        placement: Placement,
        specs: Sequence[NodeSpec],
    ) -> None:
        self._request = request
        self._specs = specs
        self._placement = placement
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
            specs = [self._placement.put(spec, i) for i, spec in enumerate(self._specs)]
            for spec in specs:
                self._expect(spec)
            for spec in specs:
                self._start(spec)
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
        finally:
            self._end()
        self._stopwatch.look()
        return self._stopwatch.seconds

    def _expect(self, spec: NodeSpec) -> None:
        """A window waits for every node that reads a part of the corpus, also for a late one."""
        if spec.corpus is not None:
            self._server.state.report(spec.name, {"sources": {spec.corpus.source: {"pending": 1}}})

    def _start(self, spec: NodeSpec) -> None:
        thread = threading.Thread(target=self._work, args=[spec], name=spec.name, daemon=True)
        thread.start()
        self._threads.append(thread)

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
            raise _stated(self._failed[0])
        return not any(thread.is_alive() for thread in self._threads)

    def _end(self) -> None:
        """Tell nodes that still run to stop, and wait for their processes to be gone."""
        self._stop.set()
        deadline = time.monotonic() + _END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


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
        known = [float(each) for each in reports if isinstance(each, (int, float))]
        return sum(known) / len(known) if known else None


def _stated(error: BaseException) -> BaseException:
    """A reason that a node gave in a sentence is about what was asked of it: exit code 2."""
    return ConfigError(str(error)) if type(error) is YeoronError else error
