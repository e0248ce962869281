"""A server, nodes that crawl and their frontier, of which any process can be killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from embedding.crawl.config import CrawlConfig
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import LeaseConfig
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.records import Window, WindowUnit
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig
from embedding.snapshots.store import SnapshotStore
from embedding.sources.config import SourceConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.process.forking import forked
from embedding.worker.spec import NodeSpec
from serving import start_server
from waiting import until
from yeoron_lab.ports import lasting_port
from yeoron_simweb.testing import running

MODEL = ModelConfig(dim=8, sample=0.0)
NODE = NodeConfig(replay_ratio=0.0, flush_seconds=0.2).model_copy(
    update={"batch_seconds": 0.1, "batch_documents": 8, "report_seconds": 0.2}
)
CLIENT = ExchangeConfig(connect_timeout_s=120, max_backoff_s=0.2)
NODES = ("n0", "n1")
RUN = """
import sys
from embedding.worker.process.node import run_node
from embedding.worker.spec import NodeSpec
if __name__ == "__main__":
    run_node(NodeSpec.model_validate_json(sys.argv[1]), lambda: False)
"""


class Crawl:
    """A server, nodes that crawl, and their frontier; every process can be killed."""

    def __init__(
        self,
        folder: Path,
        base: str,
        node: NodeConfig = NODE,
        *,
        state: Path | None = None,
        frontier: str | None = None,
        window: WindowUnit = WindowUnit.DAY,
    ) -> None:
        self.folder = folder
        self.base = base
        self.node = node
        self.config = ServerConfig(
            port=lasting_port(),
            state_dir=state or folder / "checkpoints",
            snapshots=str(folder / "snapshots"),
            checkpoint_every_s=1.0,
            min_count=1,
            min_authors=1,  # every word gets its row, so that all can be counted
            min_sources=1,
            config_digest=MODEL.digest(),
            window=window,
        )
        self.address = frontier or f"sqlite:///{folder / 'frontier' / 'yeoron.db'}"
        self.frontier = Frontier(self.address)
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.script = folder / "node.py"
        self.script.write_text(RUN, encoding="utf-8")
        self.client = ParameterClient(
            f"grpc://127.0.0.1:{self.config.port}", node="looker", config=CLIENT
        )

    def serve(self) -> None:
        self.server = start_server(self.config, dim=MODEL.dim)

    def kill_server(self) -> None:
        self.server.kill()
        self.server.join(120)

    def start(self, name: str) -> None:
        spec = NodeSpec(
            name=name,
            peers=NODES,
            server=self.client.location,
            sources=sources(self.base),
            crawl=CrawlConfig(
                frontier=self.address,
                leases=LeaseConfig(seconds=5).model_copy(update={"allocate_every": 8}),
                allow_private_hosts=(self.base.removeprefix("http://"),),
                extract_processes=0,
                rate=200.0,
            ).model_copy(update={"near_window": 0, "backoff": 0.2}),
            text=TextConfig(tokenizer="whitespace", mask=False),
            model=MODEL,
            node=self.node,
            exchange=CLIENT,
        )
        self.nodes[name] = subprocess.Popen(
            [sys.executable, str(self.script), spec.model_dump_json(context=WITH_SECRETS)]
        )

    def processes(self, name: str) -> list[psutil.Process]:
        return psutil.Process(self.nodes[name].pid).children(recursive=True)

    def kill(self, name: str) -> None:
        """kill -9 all processes of a node at once."""
        whole = [*self.processes(name), psutil.Process(self.nodes[name].pid)]
        for each in whole:
            each.send_signal(signal.SIGSTOP)
        for each in whole:
            each.kill()
        self.nodes[name].wait(120)

    def kill_one(self, name: str, chance: random.Random) -> None:
        """kill -9 one of a node's two processes; the node starts both again."""
        working = [each for each in self.processes(name) if forked(each)]
        os.kill(chance.choice(working).pid, signal.SIGKILL)

    def learnt(self) -> int:
        found = self.client.status()["sources"].values()
        return sum(int(source["documents"]) for source in found)

    def replayed(self) -> int:
        """Tokens learnt again, that the server has heard of."""
        return int(self.client.status()["replayed_tokens"])

    def until(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, lambda: f"{what}: {self.client.status()['sources']}", seconds=300)

    def open(self) -> int:
        return sum(self.frontier.backlog([each.name for each in sources(self.base)]).values())

    def word_counts(self) -> dict[str, int]:
        windows = self.client.status()["windows"].values()
        starts = [datetime.fromisoformat(window["start"]) for window in windows]
        ends = [datetime.fromisoformat(window["end"]) for window in windows]
        ref = self.client.cut(Window(min(starts).astimezone(UTC), max(ends).astimezone(UTC)))
        counts = SnapshotStore(str(self.folder / "snapshots")).open(ref.id).by_source
        total: Counter[str] = Counter()
        for word, n in zip(counts.words, counts.counts.tolist(), strict=True):
            total[word] += n
        return total

    def end(self) -> None:
        for name, node in self.nodes.items():
            if node.poll() is None:
                self.kill(name)
        self.client.close()
        self.frontier.close()
        self.kill_server()


def sources(base: str) -> tuple[SourceConfig, ...]:
    common: dict[str, Any] = {"every": 0.4, "rate": 200.0, "timezone": "UTC"}
    comments = {"items": "comments", "id": "id", "text": "body", "time": "created_at"}
    comments |= {"link": "article_url", "next": "next_cursor", "cursor": "cursor"}
    return (
        SourceConfig(name="feed", kind="feed", url=f"{base}/news/politics/rss.xml", **common),
        SourceConfig(
            name="sitemap", kind="sitemap", url=f"{base}/news/society/sitemap.xml", **common
        ),
        SourceConfig(
            name="comments",
            kind="comments",
            url=f"{base}/comments/api?limit=20",
            pages=50,
            **comments,
            **common,
        ),
    )


def documents() -> list[dict[str, object]]:
    parts = ("politics", "society", "comments")
    return [
        {
            "date": f"2020-02-{1 + i % 27:02d}T{i % 24:02d}:{i % 60:02d}:00+00:00",
            "title": f"제목 {i}",
            "text": f"시장 상인 가게 손님 물건 가격 장사 매출 골목 거리 글{i}번 이야기. " * 2,
            "part": parts[i % 3],
        }
        for i in range(270)
    ]


@contextmanager
def crawling(folder: Path, node: NodeConfig = NODE, **places: Any) -> Iterator[Crawl]:
    with running(None, documents()) as base, crawling_at(base, folder, node, **places) as found:
        yield found


@contextmanager
def crawling_at(base: str, folder: Path, node: NodeConfig = NODE, **places: Any) -> Iterator[Crawl]:
    found = Crawl(folder, base, node, **places)
    found.serve()
    try:
        yield found
    finally:
        found.end()
