"""Nodes whose frontier's database is locked, gone or slow: they wait, and lose nothing.

A crawler in this process meets every kind of trouble (tests/crawl/test_patience.py).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa

from embedding.crawl.config import CrawlConfig
from embedding.crawl.lease import LeaseConfig
from embedding.kernel.config import WITH_SECRETS
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.sources.config import SourceConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.process.forking import forked
from embedding.worker.spec import NodeSpec
from frontiers import troubled
from pgserver import running_postgres
from waiting import until
from yeoron_simweb.testing import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MODEL = ModelConfig(dim=4, sample=0.0)
NODES = ("n0", "n1")
LEASE = 3.0
DOCUMENTS = 120
RUN = """
import signal, sys, threading
from embedding.worker.process.node import run_node
from embedding.worker.spec import NodeSpec
if __name__ == "__main__":
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run_node(NodeSpec.model_validate_json(sys.argv[1]), stop.is_set)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ParameterServer]:
    config = ServerConfig(
        min_count=1,
        min_authors=1,
        min_sources=1,
        config_digest=MODEL.digest(),
        state_dir=tmp_path / "state",
        checkpoint_every_s=0.5,
    )
    with running_server(config, SyncConfig(policy="asp"), dim=4) as found:
        yield found


def test_nodes_outlive_a_frontier_that_cannot_be_written(
    server: ParameterServer, tmp_path: Path
) -> None:
    with (
        troubled("sqlite locked", tmp_path) as database,
        running(None, documents()) as base,
        nodes(server, base, tmp_path, database.address) as work,
    ):
        until(lambda: learnt(server) >= DOCUMENTS // 4, lambda: work.log("they do not learn"))
        before = work.processes()
        with database.trouble():
            # Longer than a lease: nobody may take what the other could not renew.
            for name in NODES:
                until(lambda name=name: away(server, name) > 2 * LEASE, lambda: work.log("away"))
            work.same(before)
        all_is_learnt_once(server, work, database.address, before)
    for name in NODES:
        told = (tmp_path / f"{name}.log").read_text(encoding="utf-8")
        begun, ended = (told.count(words) for words in ("does not answer", "answers again"))
        assert begun <= ended + 1, "one line, not one for each try"


def test_nodes_work_with_a_slow_database(server: ParameterServer, tmp_path: Path) -> None:
    with (
        running_postgres() as postgres,
        running(None, documents()) as base,
        nodes(server, base, tmp_path, address := postgres.new_database()) as work,
    ):
        until(lambda: learnt(server) >= DOCUMENTS // 4, lambda: work.log("they do not learn"))
        before = work.processes()
        with postgres.slow():
            until(lambda: learnt(server) >= DOCUMENTS // 2, lambda: work.log("they do not go on"))
            work.same(before)
        all_is_learnt_once(server, work, address, before)


def all_is_learnt_once(
    server: ParameterServer, work: Nodes, address: str, before: dict[str, set[int]]
) -> None:
    """By the processes that there were before the trouble, which know of none any more."""
    until(lambda: done(address) == DOCUMENTS, lambda: work.log(f"not all is done: {rows(address)}"))
    work.same(before)
    assert learnt(server) == DOCUMENTS, "nothing twice, nothing lost"
    until(lambda: not any(away(server, name) for name in NODES), lambda: work.log("over"))


class Nodes:
    def __init__(self, folder: Path, started: dict[str, subprocess.Popen[bytes]]) -> None:
        self._folder = folder
        self._started = started

    def processes(self) -> dict[str, set[int]]:
        """The two processes of each node."""
        return {
            name: {each.pid for each in psutil.Process(node.pid).children(True) if forked(each)}
            for name, node in self._started.items()
        }

    def same(self, before: dict[str, set[int]]) -> None:
        """The processes are these. One that a crawler begins looks like its parent at first."""
        until(lambda: self.processes() == before, lambda: self.log("a process has ended"))

    def log(self, what: str) -> str:
        logs = (self._folder / f"{name}.log" for name in NODES)
        return "\n".join([what, *(log.read_text(encoding="utf-8")[-1500:] for log in logs)])


@contextmanager
def nodes(server: ParameterServer, base: str, folder: Path, frontier: str) -> Iterator[Nodes]:
    script = folder / "node.py"
    script.write_text(RUN, encoding="utf-8")
    started = {}
    try:
        for name in NODES:
            with (folder / f"{name}.log").open("wb") as log:
                text = spec(name, server.location, base, frontier).model_dump_json(
                    context=WITH_SECRETS
                )
                started[name] = subprocess.Popen(
                    [sys.executable, str(script), text], stdout=log, stderr=subprocess.STDOUT
                )
        yield Nodes(folder, started)
    finally:
        for node in started.values():
            node.send_signal(signal.SIGTERM)
        for node in started.values():
            node.wait(300)


def spec(name: str, location: str, base: str, frontier: str) -> NodeSpec:
    common: dict[str, Any] = {"every": 0.4, "rate": 12.0, "timezone": "UTC"}
    names = {"items": "comments", "id": "id", "text": "body", "time": "created_at"}
    names |= {"link": "article_url", "next": "next_cursor", "cursor": "cursor"}
    return NodeSpec(
        name=name,
        peers=NODES,
        server=location,
        sources=(
            SourceConfig(name="feed", kind="feed", url=f"{base}/news/politics/rss.xml", **common),
            SourceConfig(
                name="comments",
                kind="comments",
                url=f"{base}/comments/api?limit=4",
                pages=100,
                **names,
                **common,
            ),
        ),
        crawl=CrawlConfig(
            frontier=frontier,
            leases=LeaseConfig(seconds=LEASE),
            allow_private_hosts=(base.removeprefix("http://"),),
            extract_processes=0,
            rate=12.0,
        ).model_copy(update={"near_window": 0, "dedupe_min_chars": 10_000}),
        text=TextConfig(tokenizer="whitespace", mask=False),
        model=MODEL,
        node=NodeConfig(replay_ratio=0.0, flush_seconds=0.2).model_copy(
            update={"batch_seconds": 0.1, "report_seconds": 0.2}
        ),
    )


def documents() -> list[dict[str, object]]:
    return [
        {
            "date": f"2020-02-{1 + i % 27:02d}T{i % 24:02d}:{i % 60:02d}:00+00:00",
            "title": f"제목 {i}",
            "text": f"시장 상인 가게 손님 물건 가격 장사 매출 골목 거리 글{i}번 이야기. " * 2,
            "part": ("politics", "comments")[i % 2],
        }
        for i in range(DOCUMENTS)
    ]


def learnt(server: ParameterServer) -> int:
    return sum(int(each["documents"]) for each in server.status()["sources"].values())


def away(server: ParameterServer, name: str) -> float:
    report = server.status()["nodes"].get(name, {}).get("report") or {}
    return float(report.get("frontier_away_s", 0.0))


def rows(address: str) -> dict[tuple[str, str, str], int]:
    """Addresses by source, status and the reason of the status."""
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    columns = "source, status, coalesce(reason, '')"
    query = f"SELECT {columns}, count(*) FROM frontier_urls GROUP BY {columns}"
    with engine.connect() as connection:
        return {tuple(row[:3]): row[3] for row in connection.execute(sa.text(query))}


def done(address: str) -> int:
    return sum(n for (_, status, _), n in rows(address).items() if status == "done")
