"""A training under way: a parameter server in this process, a thread here for each node, which
starts the two processes that do its work and sees them through, and a snapshot at the end (or one a
window, for a dated corpus).
"""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

from embedding.exchange.client import ParameterClient
from embedding.exchange.relay import RELAYS
from embedding.exchange.topology import MeetingSpec, RelaySpec
from embedding.kernel.devices import gpus
from embedding.kernel.durable import sha256
from embedding.kernel.errors import ConfigError, PlatformError, YeoronError
from embedding.kernel.private import ensure_secret
from embedding.kernel.processes import peak_memory
from embedding.kernel.records import Window, WindowUnit
from embedding.server.config import ServerConfig
from embedding.server.figures.reports import total
from embedding.server.grouping import GROUPS
from embedding.server.parts import SERVER_PARTS
from embedding.server.service import ParameterServer
from embedding.training.checks import INITIAL_ROWS
from embedding.training.request import Progress, TrainProgress, TrainRequest, TrainResult, set_of
from embedding.training.resume import TrainingResume
from embedding.training.survey import CorpusSurvey
from embedding.training.vocabulary import CountingThread
from embedding.worker.process.node import run_node
from embedding.worker.spec import CorpusShare, NodeSpec

TRAINING_POOL = "train"
_POLL_SECONDS = 0.05
_SHOW_SECONDS = 0.5
_END_SECONDS = 30.0
HALF_LIFE_TOKENS = 50_000_000.0
"""A dated corpus forgets, as the stream does."""


def train(
    request: TrainRequest,
    store: Path,
    progress: Progress,
    resume: TrainingResume | None,
    count: CountingThread | int | None,
    survey: CorpusSurvey,
) -> TrainResult:
    """Start the server and the nodes, have the words counted, and see the nodes through.

    count   of the corpus' words, under way; tokens of an epoch where an interrupted training has
            counted them: the server has its words; None: the vocabulary grows
    survey  what is known of the corpus
    """
    with (
        _closed(request) as request,
        _server(request, store, resume) as server,
        placed(request, server.location, survey) as specs,
    ):
        total = None
        if count is not None:
            tokens = count if isinstance(count, int) else count.admit(server)
            total = tokens * request.epochs
            if resume is not None and resume.total is None:
                failed = None if server.recovery is None else server.recovery.request(wait=True)
                if failed is not None:
                    raise PlatformError(f"state_dir: {failed}.")
                resume.total = tokens
                resume.save()
        # Each group becomes what the leader is now: its words, and how often they were read.
        for follower in dict.fromkeys(spec.server for spec in specs):
            if follower != server.location:
                with ParameterClient(follower, node="training", config=request.exchange) as client:
                    client.checkpoint(wait=True)
        before = server.state.meters.tokens
        seconds = Run(request, server, specs).finish(total, progress)
        # A goodbye may not have come through: nothing that was pushed is missing in a window.
        server.state.flush()
        server.catch_up()
        _cut(request, server)
        return _result(server, request.corpus.name, seconds, before)


@contextmanager
def _closed(request: TrainRequest) -> Iterator[TrainRequest]:
    """The request of a training whose processes ask for a token of their own: every user of the
    machine reaches their ports.
    """
    with tempfile.TemporaryDirectory(prefix="yeoron-token-") as folder:
        file = Path(folder) / "token"
        ensure_secret(file, secrets.token_hex(32))
        known = {"token_file": file}
        yield request.model_copy(
            update={
                "server": request.server.model_copy(update=known),
                "exchange": request.exchange.model_copy(update=known),
            }
        )


@contextmanager
def _server(
    request: TrainRequest, store: Path, resume: TrainingResume | None
) -> Iterator[ParameterServer]:
    window = request.dated or (WindowUnit.MONTH if request.lines_are_dated else WindowUnit.DAY)
    dated = request.dated is not None
    config = ServerConfig(
        **{
            "half_life_tokens": HALF_LIFE_TOKENS if dated else None,
            **set_of(request.server),
            "snapshots": str(store),
            "window": window,
            "cut": "watermark" if dated else "manual",
            "in_step": True,
            # In one snapshot of a whole corpus a rare word's rough vector is only in the way, and
            # nothing is compared with it.
            "rare_mentions": request.server.rare_mentions if dated else 0,
            "usage": dated and request.server.usage,
            "initial_rows": INITIAL_ROWS,
            "state_dir": None if resume is None else resume.server,
            "config_digest": request.model.digest(),
            "corpus_digest": "" if request.out is None else sha256(request.corpus),
        }
    )
    server = ParameterServer(
        config,
        request.sync,
        dim=request.model.width,
        seed=request.model.seed,
        buckets=request.model.gram_rows,
        biases=request.model.biases,
        pages=False,
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _cut(request: TrainRequest, server: ParameterServer) -> None:
    """Cut what is not cut yet: every window of a dated corpus, or all of it as one.

    Of a corpus without a word it is the window of now.
    """
    windows = sorted(
        (datetime.fromisoformat(str(window["start"])), datetime.fromisoformat(str(window["end"])))
        for window in server.status()["windows"].values()
    )
    if not windows:
        now = server.config.calendar.window(time.time())
        windows = [(now.start, now.end)]
    if request.dated is None:
        windows = [(windows[0][0], max(end for _, end in windows))]
    for start, end in windows:
        server.snapshotter.cut(Window(start, end))


_SYNC = ("policy", "running", "switched", "dropped_pushes", "dropped_tokens")
_PEAKS = {"reader": "reader_peak_memory_bytes", "gradient": "peak_memory_bytes"}


def _result(server: ParameterServer, corpus: str, seconds: float, before: int) -> TrainResult:
    status, meters = server.status(), server.state.meters
    reports = {name: dict(node.get("report") or {}) for name, node in status["nodes"].items()}
    tokens = int(status["tokens"])
    texts = [report.get("text") or {} for report in reports.values()]
    behind = sum(pushes_behind * n for pushes_behind, n in meters.staleness.items())
    return TrainResult(
        tokens_trained=tokens,
        seconds=0.0,
        train_seconds=seconds,
        words_per_second=(tokens - before) / seconds,
        loss=float("nan") if status["loss"] is None else float(status["loss"]),
        vocabulary=int(status["vocabulary"]),
        documents=int(status["documents"]),
        late_documents=sum(source["late_documents"] for source in status["sources"].values()),
        left_out={
            f"{corpus}:{key.rpartition('#')[2]}": reason
            for text in texts
            for key, reason in (text.get("left_out") or {}).items()
        },
        given_up=sum(text.get("given_up", 0) for text in texts),
        bytes_pushed=meters.bytes_in
        + total(status["shards"], "bytes_in")
        + total(status["groups"], "node_bytes_in"),
        bytes_pulled=meters.bytes_out
        + total(status["shards"], "bytes_out")
        + total(status["groups"], "node_bytes_out"),
        bytes_per_entry=status["bytes"]["pushed_per_entry"],
        bytes_by_part=meters.parts.describe(),
        peak_memory={
            "train": peak_memory(),
            **{name: peak_memory(pid) for name, pid in server.pids.items()},
            **{
                f"{name}-{process}": int(report[key])
                for name, report in sorted(reports.items())
                for process, key in _PEAKS.items()
                if key in report
            },
        },
        nodes=reports,
        transports=status["topology"],
        snapshots=server.snapshotter.refs(),
        resumed_tokens=before,
        replayed_tokens=int(status["replayed_tokens"]),
        sync={
            **{name: status["sync"][name] for name in (*_SYNC, *SERVER_PARTS)},
            "staleness": behind / max(sum(meters.staleness.values()), 1),
        },
    )


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
