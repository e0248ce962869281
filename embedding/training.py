"""Training on a corpus file through the same node, exchange and server code as the stream.

A composition root: a parameter server in this process, nodes on a local Dask cluster, a snapshot at
the end (or one a window, for a dated corpus).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from embedding.cluster import node_task
from embedding.config import Config
from embedding.errors import InputError, PlatformError
from embedding.models.config import ModelConfig
from embedding.records import SnapshotRef, Window, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer
from embedding.stream.config import StreamConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.reading import open_corpus
from embedding.worker.spec import CorpusShare, NodeSpec

POOL = "train"
POLL_SECONDS = 0.5


class TrainRequest(Config):
    """One training: what is read, by how many nodes, with which model and policy."""

    corpus: Path
    """Text (one sentence a line) or dated JSONL, plain or .xz."""
    out: Path | None = None
    """Folder of the snapshot store; None keeps the snapshot only while the call runs."""
    nodes: int = Field(default=1, ge=1, le=256)
    """Nodes, each a Dask worker process."""
    epochs: int = Field(default=1, ge=1)
    """How often the corpus is read."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens after which the training ends; None reads all."""
    dated: WindowUnit | None = None
    """Cut a snapshot for each window of this unit, learning in time order."""
    min_count: int = Field(default=5, ge=1)
    """A word gets a row when it was read so often."""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    """Where the server's tables live: cpu, cuda or auto."""
    model: ModelConfig = ModelConfig()
    """The model."""
    text: TextConfig = TextConfig(tokenizer="whitespace", mask=False)
    """How text becomes words."""
    node: NodeConfig = NodeConfig(replay_ratio=0.0)
    """Blocks; no replay unless asked for, as the corpus is read `epochs` times."""
    sync: SyncConfig = SyncConfig()
    """How nodes are kept in step."""
    timeout: float = Field(default=24 * 3600.0, gt=0)
    """Seconds after which the training is given up."""


@dataclass(frozen=True)
class TrainResult:
    """What a training did.

    seconds        from call to the last snapshot; train_seconds while tokens were learnt
    snapshots      one, or one a window for a dated corpus
    """

    tokens_trained: int
    seconds: float
    train_seconds: float
    words_per_second: float
    loss: float
    vocabulary: int
    documents: int
    nodes: dict[str, dict[str, Any]]
    snapshots: list[SnapshotRef] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        return {**vars(self), "snapshots": [ref.to_dict() for ref in self.snapshots]}


Progress = Callable[[dict[str, Any]], None]


def train_corpus(request: TrainRequest, progress: Progress = lambda _: None) -> TrainResult:
    """Train; raises InputError for a corpus that cannot be read or admits no word."""
    open_corpus(request.corpus).close()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="yeoron-train-") as scratch:
        store = request.out or Path(scratch) / "snapshots"
        store.mkdir(parents=True, exist_ok=True)
        with _server(request, store) as server:
            seconds = _run(request, server, Path(scratch), progress)
            status = server.status()
            if not status["vocabulary"]:
                raise InputError(
                    f"{request.corpus}: no word occurs {request.min_count} times, so there is "
                    "nothing to train; lower min_count or give more text."
                )
            refs = _snapshots(request, server)
            final = server.status()
    tokens = int(status["tokens"])
    return TrainResult(
        tokens_trained=tokens,
        seconds=time.monotonic() - started,
        train_seconds=seconds,
        words_per_second=tokens / seconds if seconds else 0.0,
        loss=float(final["loss"] if final["loss"] is not None else "nan"),
        vocabulary=int(final["vocabulary"]),
        documents=int(final["documents"]),
        nodes={name: dict(node.get("report") or {}) for name, node in final["nodes"].items()},
        snapshots=refs,
    )


@contextmanager
def _server(request: TrainRequest, store: Path) -> Iterator[ParameterServer]:
    config = ServerConfig(
        device=request.device,
        snapshots=str(store),
        window=request.dated or WindowUnit.DAY,
        cut="manual" if request.dated is None else "watermark",
        min_count=request.min_count,
        config_digest=request.model.digest(),
        half_life_tokens=None if request.dated is None else 50_000_000.0,
    )
    server = ParameterServer(config, request.sync, dim=request.model.width, seed=request.model.seed)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _specs(request: TrainRequest, location: str) -> list[NodeSpec]:
    share = None if request.tokens is None else max(1, request.tokens // request.nodes)
    return [
        NodeSpec(
            name=f"{POOL}-node-{i}",
            server=location,
            corpus=CorpusShare(
                path=str(request.corpus.resolve()),
                index=i,
                count=request.nodes,
                epochs=request.epochs,
                tokens=share,
            ),
            text=request.text,
            stream=StreamConfig(),
            model=request.model,
            node=request.node,
        )
        for i in range(request.nodes)
    ]


def _run(
    request: TrainRequest, server: ParameterServer, scratch: Path, progress: Progress
) -> float:
    """Run every node to its end; seconds between the first and the last learnt token."""
    first = last = 0.0
    deadline = time.monotonic() + request.timeout
    with _cluster(request.nodes, scratch) as client:
        futures = [
            client.submit(
                node_task, spec.model_dump_json(), POOL, key=spec.name, resources={"node": 1}
            )
            for spec in _specs(request, server.location)
        ]
        seen = 0
        while not all(future.done() for future in futures):
            if time.monotonic() > deadline:
                raise PlatformError(f"the training did not end within {request.timeout:.0f} s.")
            status = server.status()
            if status["tokens"] > seen:
                first = first or time.monotonic() - POLL_SECONDS
                last, seen = time.monotonic(), int(status["tokens"])
            progress(status)
            time.sleep(POLL_SECONDS)
        for future in futures:
            future.result()
    return max(last - first, POLL_SECONDS)


@contextmanager
def _cluster(nodes: int, scratch: Path) -> Iterator[Any]:
    import dask
    from distributed import Client, LocalCluster

    with (
        # A node starts two processes of its own, which a daemonic worker may not.
        dask.config.set({"distributed.worker.daemon": False}),
        LocalCluster(
            n_workers=nodes,
            threads_per_worker=2,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            resources={"node": 1},
            memory_limit=None,
            local_directory=str(scratch),
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _snapshots(request: TrainRequest, server: ParameterServer) -> list[SnapshotRef]:
    windows = server.status()["windows"].values()
    starts = sorted(datetime.fromisoformat(str(window["start"])) for window in windows)
    unit = request.dated or WindowUnit.DAY
    chosen = starts if request.dated is not None else starts[-1:]
    return [server.cutter.cut(Window.holding(start.astimezone(UTC), unit)) for start in chosen]
