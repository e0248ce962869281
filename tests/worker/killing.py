"""A server in a process of its own and nodes that learn a corpus; all of it can be killed."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.records import Window, WindowUnit
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig
from embedding.snapshots.store import SnapshotStore
from embedding.stream.config import StreamConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.process.node import run_node
from embedding.worker.spec import CorpusShare, NodeSpec
from serving import start_server
from waiting import until
from yeoron_lab.ports import lasting_port

PATIENCE_S = 300.0
"""What does nothing for so long hangs: on a busy machine a process takes a minute to start."""
MODEL = ModelConfig(dim=8, sample=0.0)
NODE = NodeConfig(replay_ratio=0.0, block_tokens=2_000).model_copy(
    update={"look_ahead_tokens": 6_000, "report_seconds": 0.2}
)
CLIENT = ExchangeConfig(connect_timeout_s=PATIENCE_S, max_backoff_s=0.2)


class Chaos:
    """A server in a process of its own and nodes that learn a corpus; all can be killed."""

    def __init__(self, folder: Path, policy: str, **settings: Any) -> None:
        self.folder = folder
        self.policy = policy
        given = {
            "port": lasting_port(),
            "state_dir": folder / "state",
            "snapshots": str(folder / "store"),
            "checkpoint_every_s": 1.0,
            "min_count": 2,
            "config_digest": MODEL.digest(),
        }
        self.config = ServerConfig(**{**given, **settings})
        self.server: BaseProcess | None = None
        self.node = NODE
        self.stop = threading.Event()
        self.nodes = []
        self.client = ParameterClient(
            f"grpc://127.0.0.1:{self.config.port}", node="looker", config=CLIENT
        )

    def serve(self) -> None:
        self.server = start_server(self.config, dim=MODEL.dim, policy=self.policy)

    def kill_server(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.join(300)

    def kill_shards(self, n: int) -> None:
        assert self.server is not None
        for child in children(self.server, n):
            child.kill()

    def learn(
        self,
        pool: ThreadPoolExecutor,
        path: Path,
        nodes: int,
        sources: tuple[str, ...] = (),
        window: WindowUnit | None = None,
        **exchange: Any,
    ) -> None:
        for i in range(nodes):
            spec = NodeSpec(
                name=f"n{i}",
                server=self.client.location,
                corpus=CorpusShare(
                    path=str(path), index=i, count=nodes, sources=sources, window=window
                ),
                text=TextConfig(tokenizer="whitespace", mask=False),
                model=MODEL,
                node=self.node,
                stream=StreamConfig().model_copy(update={"queue_tokens": 4_000}),
                exchange=CLIENT.model_copy(update=exchange),
            )
            self.nodes.append(pool.submit(run_node, spec, self.stop.is_set))

    def expect(self, nodes: int) -> None:
        """Windows wait for so many nodes, as those of a training do, before they have begun."""
        for i in range(nodes):
            report = {"sources": {"corpus": {"pending": 1}}}
            self.client.peer.action("report", {"node": f"n{i}", "report": report})

    def reach(self, tokens: float) -> None:
        """Wait until so many tokens were learnt."""
        before, deadline = -1, 0.0
        while (learnt := self.learnt()) < tokens:
            if learnt != before:
                before, deadline = learnt, time.monotonic() + PATIENCE_S
            assert time.monotonic() < deadline, f"training stands still at {learnt} tokens"
            if all(node.done() for node in self.nodes):
                failed = [node.exception() for node in self.nodes]
                assert failed == [None] * len(failed), failed
                return
            time.sleep(0.02)

    def ended(self):
        """How the nodes ended, once all is learnt."""
        self.reach(math.inf)
        return [node.result(timeout=PATIENCE_S) for node in self.nodes]

    def learnt(self) -> int:
        return sum(int(source["tokens"]) for source in self.client.status()["sources"].values())


@contextmanager
def chaos(folder: Path, policy: str, **settings: Any) -> Iterator[tuple[Chaos, ThreadPoolExecutor]]:
    found = Chaos(folder, policy, **settings)
    with ThreadPoolExecutor(4) as pool:
        found.serve()
        try:
            yield found, pool
        finally:
            found.stop.set()
            for node in found.nodes:
                node.exception(timeout=PATIENCE_S)
            found.client.close()
            found.kill_server()


def children(process: BaseProcess, n: int) -> list[psutil.Process]:
    """The first `n` processes that this one has started, as soon as there are so many."""
    parent = psutil.Process(process.pid)
    until(lambda: len(parent.children()) >= n, lambda: parent.children(), PATIENCE_S)
    return parent.children()[:n]


def corpus(path: Path, lines: int) -> Counter[str]:
    picked = random.Random(5)
    words = [" ".join(f"낱말{picked.randrange(300)}" for _ in range(8)) for _ in range(lines)]
    path.write_text("\n".join(words) + "\n", encoding="utf-8")
    return Counter(word for line in words for word in line.split())


def named(kind: str) -> list[int]:
    """Processes of this kind that nodes have now."""
    alive = multiprocessing.active_children()
    return [each.pid or 0 for each in alive if each.name.endswith(f"-{kind}")]


def gradient_processes() -> set[int]:
    return set(named("gradient"))


def kill_without_reader() -> None:
    """kill -9 a node's gradient process when its reader has come to the end and is gone."""
    until(lambda: not named("crawler"), "the reader does not end")
    os.kill(named("gradient")[0], signal.SIGKILL)


def kill(kind: str) -> None:
    """kill -9 the process of this kind of a node that still learns."""
    names = {each.name: each.pid for each in multiprocessing.active_children()}
    nodes = sorted({name.partition("-")[0] for name in names})
    whole = [node for node in nodes if {f"{node}-crawler", f"{node}-gradient"} <= set(names)]
    os.kill(names[f"{whole[0]}-{kind}"], signal.SIGKILL)


def learnt_once(found: Chaos, words: Counter[str]) -> dict[str, Any]:
    """Every word's count is that of the corpus; every push was applied once."""
    status = found.client.status()
    nodes = status["nodes"].values()
    assert status["sources"]["corpus"]["tokens"] == words.total()
    assert status["pushes"] == sum(node["sequence"] for node in nodes)
    starts = [datetime.fromisoformat(w["start"]) for w in status["windows"].values()]
    ends = [datetime.fromisoformat(w["end"]) for w in status["windows"].values()]
    ref = found.client.cut(Window(min(starts).astimezone(UTC), max(ends).astimezone(UTC)))
    counts = SnapshotStore(str(found.folder / "store")).open(ref.id).by_source
    assert dict(zip(counts.words, counts.counts.tolist(), strict=True)) == dict(words)
    return status
