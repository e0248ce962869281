"""A small home in which every store holds something, and a node that pushes to its server."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from embedding.crawl.frontier import Frontier
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.records import SourceProgress, Table, Window
from embedding.models.config import ModelConfig
from embedding.platform.serving import server_for
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer
from embedding.settings import PathsConfig, Settings
from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore
from embedding.snapshots.store import SnapshotStore
from embedding.worker.process.making import connect
from yeoron_lab.ports import lasting_port

DIM = 4
DAY = Window(datetime(2020, 2, 3, tzinfo=UTC), datetime(2020, 2, 4, tzinfo=UTC))
AT = DAY.start.timestamp()
WORDS = ["말", "글", "전세", "마스크", "여론"]


def home_settings(home: Path, *, shards: int = 1, split: str = "rows", **model: object) -> Settings:
    sources = home.parent / "sources.toml"
    sources.write_text('# one\n[[source]]\nname = "뉴스"\n', "utf-8")
    return Settings(
        paths=PathsConfig(home=home, sources=sources),
        model=ModelConfig(dim=DIM, **model),
        server=ServerConfig(
            port=lasting_port(),
            http_port=lasting_port(),
            min_count=1,
            min_authors=1,
            min_sources=1,
            checkpoint_every_s=600.0,
            device="cpu",
            shards=shards,
            split=split,
        ),
    )


@contextmanager
def serving_home(settings: Settings) -> Iterator[ParameterServer]:
    server = server_for(settings, settings.server, settings.sync)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Pusher:
    """Pushes rows and counts of words, and marks its documents in the frontier."""

    def __init__(
        self,
        settings: Settings,
        server: ParameterServer,
        name: str = "n0",
        line: ExchangeConfig | None = None,
    ) -> None:
        patient = {"connect_timeout_s": 60, "request_timeout_s": 60, "rows": "float32"}
        line = (line or ExchangeConfig()).model_copy(update=patient)
        self.client = connect(
            server.location, node=name, config=line, config_digest=settings.digest()
        )
        welcome = self.client.hello()
        self.sequence, self.clock, self.name = welcome.sequence, welcome.clock, name

    def learn(self, words: list[str], by: float = 1.0, at: float = AT) -> np.ndarray:
        ids = self.client.admit(words, np.full(len(words), 9))
        self.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=self.clock))
        order = np.sort(ids)
        rows = np.full((len(ids), DIM), by, dtype=np.float32) * np.arange(1, DIM + 1)
        deltas = tuple(
            RowDelta(table, order, (rows * sign).astype(np.float32))
            for table, sign in ((Table.IN, 1), (Table.OUT, -1))
        )
        self.sequence += 1
        n, ones = len(words), np.ones(len(words), dtype=np.int64)
        counts = BlockCounts((CountGroup("뉴스", int(at), n),), -ones, list(words), 3 * ones, ones)
        progress = (SourceProgress("뉴스", 1, 3 * n, at, int(at), (1.0,)),)
        ack = self.client.push(
            Push(
                *(self.name, self.sequence, self.clock, deltas, counts, progress),
                tokens=3 * n,
                loss_sum=1.0,
                pairs=1,
                tokenizer_digest="",
            )
        )
        self.clock = ack.clock
        return ids

    def rows(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        ids = self.client.admit(words, np.full(len(words), 9))
        found = self.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=self.clock))
        return np.array(found.rows[Table.IN]), np.array(found.rows[Table.OUT])


def frontier_address(settings: Settings) -> str:
    return f"sqlite:///{settings.paths.frontier.resolve() / 'yeoron.db'}"


def fill_stores(settings: Settings) -> None:
    """Everything but the server's own stores."""
    paths = settings.paths
    frontier = Frontier(frontier_address(settings))
    keys = [f"https://news.example/{at}" for at in range(20)]
    frontier.offer("뉴스", [(key, AT) for key in keys], AT)
    frontier.acknowledge(keys[:5], AT)
    frontier.close()
    table = pa.table(
        {
            "word": WORDS,
            "source": ["뉴스"] * 5,
            "day": [int(AT // 86_400)] * 5,
            "hash": [1, 2, 3, 4, 5],
            "url": keys[:5],
            "published": [AT] * 5,
        },
        schema=EVIDENCE_SCHEMA,
    )
    EvidenceStore(paths.evidence).add(table, "n0")
    for folder, name in ((paths.mlflow, "mlflow.db"), (paths.airflow, "airflow.db")):
        folder.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(folder / name)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("CREATE TABLE runs (id TEXT)")
            database.execute("INSERT INTO runs VALUES ('r1')")
            database.commit()
    (paths.airflow / "secrets.json").write_text(json.dumps({"fernet": "k"}))
    (paths.airflow / "passwords.json").write_text(json.dumps({"admin": "p"}))
    (paths.home / "rejected-sources.json").write_text("{}")
    (paths.home / "logs").mkdir()
    (paths.home / "logs" / "server.log").write_text("log")


def fill_reports(settings: Settings) -> None:
    for ref in SnapshotStore(settings.paths.snapshots).list():
        report = settings.paths.trends / ref.id
        report.mkdir(parents=True)
        (report / "report.json").write_text('{"words": []}', "utf-8")
        model = settings.paths.mlflow / "artifacts" / "0" / "r1" / "artifacts" / "model"
        shutil.copytree(settings.paths.snapshots / ref.id, model / "snapshot")


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return home_settings(tmp_path / "home")


@pytest.fixture
def running(settings: Settings) -> Iterator[tuple[Settings, ParameterServer, Pusher]]:
    """A home whose server runs, with one snapshot."""
    with serving_home(settings) as server:
        node = Pusher(settings, server)
        node.learn(WORDS)
        server.snapshotter.cut(DAY)
        fill_stores(settings)
        fill_reports(settings)
        yield settings, server, node
        node.client.close()
