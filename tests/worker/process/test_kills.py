"""kill -9 of crawling nodes and of the server: each document that was published is learnt once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import psutil
import pytest

from disks import full, small_disk
from embedding.crawl.config import CrawlConfig
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import LeaseConfig
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.ports import lasting_port
from embedding.kernel.records import Window
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig
from embedding.snapshots.store import SnapshotStore
from embedding.sources.config import SourceConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.process.forking import forked
from embedding.worker.spec import NodeSpec
from pgserver import running_postgres
from serving import start_server
from waiting import until
from yeoron_simweb.testing import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

MODEL = ModelConfig(dim=8, sample=0.0)
NODE = NodeConfig(
    replay_ratio=0.0, flush_seconds=0.2, batch_seconds=0.1, batch_documents=8, report_seconds=0.2
)
CLIENT = ExchangeConfig(connect_timeout_s=120, max_backoff_s=0.2)
NODES = ("n0", "n1")
KILLS = int(os.environ.get("KILLS", "2"))
"""More of them for a longer look; KILLS_SEED for other moments."""
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
        self.server.join(300)

    def start(self, name: str) -> None:
        spec = NodeSpec(
            name=name,
            peers=NODES,
            server=self.client.location,
            sources=sources(self.base),
            crawl=CrawlConfig(
                frontier=self.address,
                leases=LeaseConfig(seconds=5, allocate_every=8),
                allow_private_hosts=(self.base.removeprefix("http://"),),
                extract_processes=0,
                near_window=0,
                rate=200.0,
                backoff=0.2,
            ),
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
    with running(None, documents()) as base:
        found = Crawl(folder, base, node, **places)
        found.serve()
        try:
            yield found
        finally:
            found.end()


def test_whatever_is_killed_each_document_is_learnt_once(tmp_path: Path) -> None:
    chance = random.Random(int(os.environ.get("KILLS_SEED", "11")))
    with crawling(tmp_path) as found:
        for name in NODES:
            found.start(name)
        shown = found.frontier.leases(LeaseConfig())
        found.until(lambda: {*holders(shown.show())} == {*NODES}, "each node reads something")
        victims = list(islice(cycle(["process", "both", "server", "node"]), KILLS))
        for part, victim in enumerate(victims):
            found.until(
                lambda part=part: found.learnt() >= 270 * (part + 0.3) / (len(victims) + 1),
                f"before kill {part}",
            )
            time.sleep(chance.uniform(0.0, 0.6))
            name = chance.choice(NODES)
            if victim == "process":
                found.kill_one(name, chance)
            if victim in ("node", "both"):
                found.kill(name)
            if victim in ("server", "both"):
                found.kill_server()
                found.serve()
            if victim in ("node", "both"):
                found.start(name)
        # One dies for good: the other tells apart what it had pushed and what it had only fetched.
        found.kill("n0")
        found.until(lambda: {*holders(shown.show())} == {"n1"}, "its sources are taken over")
        found.until(lambda: found.open() == 0, "everything is acknowledged")
        all_is_learnt_once(found)


def test_six_kills_a_database_restart_and_a_full_disk_in_one_run(tmp_path: Path) -> None:
    """The disk is that of the server's checkpoints and journal."""
    chance = random.Random(7)
    troubles = ("process", "database", "server", "node", "disk", "process", "server", "node")
    with (
        running_postgres() as postgres,
        small_disk(tmp_path) as disk,
        crawling(tmp_path, state=disk / "state", frontier=postgres.new_database()) as found,
    ):
        for name in NODES:
            found.start(name)
        for part, trouble in enumerate(troubles):
            enough = 270 * (part + 0.3) / (len(troubles) + 1)
            found.until(lambda enough=enough: found.learnt() >= enough, f"before {part} {trouble}")
            name = chance.choice(NODES)
            if trouble == "process":
                found.kill_one(name, chance)
            if trouble == "node":
                found.kill(name)
                found.start(name)
            if trouble == "server":
                found.kill_server()
                found.serve()
            if trouble == "database":
                postgres.stop()
                time.sleep(2)
                postgres.start()
                found.frontier.close()  # this test's own connection, which nobody mends
                found.frontier = Frontier(found.address)
            if trouble == "disk":
                with full(disk):
                    time.sleep(3)
        found.until(lambda: found.learnt() >= 270, "all is learnt")
        found.until(lambda: found.open() == 0, "everything is acknowledged")
        all_is_learnt_once(found)


def all_is_learnt_once(found: Crawl) -> None:
    """Tokens learnt are tokens read, of each document."""
    assert found.learnt() == 270
    tokens, counts = found.client.status()["tokens"], found.word_counts()
    numbered = {word: n for word, n in counts.items() if word.startswith("글")}
    assert numbered == {f"글{i}번": 2 for i in range(270)}
    assert counts["시장"] == 2 * 270
    assert tokens == sum(counts.values())


def test_killed_while_it_rehearses_a_node_goes_on_and_counts_nothing_twice(
    tmp_path: Path,
) -> None:
    """What is learnt again is counted nowhere, whoever dies over it."""
    budget = {"rehearsal_passes": 1_000.0, "rehearsal_share": 1.0, "held_out": 0.0}
    chance = random.Random(5)
    with crawling(tmp_path, NODE.model_copy(update=budget)) as found:

        def rehearsal() -> dict[str, object]:
            report = found.client.status()["nodes"]["n0"]["report"]["rehearsal"]
            return dict(report)

        found.start("n0")
        replayed = 0
        for part, victim in enumerate(("process", "node", "server", "process")):
            found.until(lambda part=part: found.learnt() > 50 * (part + 1), "some is fresh")
            found.until(lambda more=replayed: found.replayed() > more + 10_000, "it rehearses")
            # On a busy machine it may have done all its passes before more text came.
            found.until(lambda: not rehearsal()["converged"], "it goes on")
            if victim == "process":
                found.kill_one("n0", chance)
            if victim == "node":
                found.kill("n0")
                found.start("n0")
            if victim == "server":
                found.kill_server()
                found.serve()
            replayed = found.replayed()
        found.until(lambda: found.learnt() == 270, "all is learnt")
        found.until(lambda: found.open() == 0, "everything is acknowledged")
        found.until(lambda: found.replayed() > replayed + 10_000, "it rehearses at the end")
        before = found.client.status()
        counts = found.word_counts()
        numbered = {word: n for word, n in counts.items() if word.startswith("글")}
        assert numbered == {f"글{i}번": 2 for i in range(270)}
        assert counts["시장"] == 2 * 270
        assert before["tokens"] == sum(counts.values())
        assert found.learnt() == 270


def holders(shown: dict[str, Any]) -> list[str | None]:
    return [each["held_by"] for each in shown["sources"].values()] or [None]
