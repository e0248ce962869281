"""A training under way: a parameter server and its nodes' threads in this process, each node's two
processes beside it, a snapshot at the end (or one a window, for a dated corpus).
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from embedding.exchange.client import ParameterClient
from embedding.kernel.durable import sha256
from embedding.kernel.errors import PlatformError
from embedding.kernel.private import ensure_secret
from embedding.kernel.processes import peak_memory
from embedding.kernel.records import Window, WindowUnit
from embedding.server.config import ServerConfig
from embedding.server.figures.reports import total
from embedding.server.parts import SERVER_PARTS
from embedding.server.service import ParameterServer
from embedding.training.checks import INITIAL_ROWS
from embedding.training.nodes import Run, placed
from embedding.training.request import Progress, TrainRequest, TrainResult, set_of
from embedding.training.resume import TrainingResume
from embedding.training.survey import CorpusSurvey
from embedding.training.vocabulary import CountingThread

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
                resume.counted(tokens)
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
