"""`yeoron forget` and `yeoron retain`: gone from every file, whatever was killed on the way."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from embedding.cli import app
from embedding.crawl.frontier import Frontier
from embedding.crawl.rewinding import blocked, erase_address, erase_before
from embedding.database.config import DatabaseConfig
from embedding.evaluation import registry, runs
from embedding.evaluation.config import EvaluationConfig
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup
from embedding.exchange.protocol import Push
from embedding.forgetting import ErasureRequest, forget, retain
from embedding.kernel.errors import ConfigError, InputError, SnapshotError
from embedding.kernel.records import Phrase, SourceProgress, Window
from embedding.models.config import ModelConfig
from embedding.platform.databases import check_databases
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer, running_server
from embedding.settings import PathsConfig, RetentionConfig, Settings
from embedding.snapshots import erasing
from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore
from embedding.snapshots.store import SnapshotStore
from embedding.worker.process.making import connect
from embedding_airflow.tracking.snapshots import track_snapshot
from pgserver import PostgresServer
from s3server import Fault, S3Server, serving_s3
from waiting import until

NAME, SOURCE, PAGE = "홍길동", "숨은게시판", "https://board.example/p/17"
DAY = Window(datetime(2020, 2, 3, tzinfo=UTC), datetime(2020, 2, 4, tzinfo=UTC))
AT = DAY.start.timestamp()
NOW = datetime(2030, 1, 1, tzinfo=UTC).timestamp()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        paths=PathsConfig(home=tmp_path / "home"),
        model=ModelConfig(dim=4),
        retention=RetentionConfig(snapshots_days=30, evidence_days=30, frontier_days=30),
    )


def server_config(settings: Settings) -> ServerConfig:
    return ServerConfig(
        state_dir=settings.paths.checkpoints,
        snapshots=settings.snapshot_store,
        config_digest=settings.digest(),
        shards=settings.server.shards,
        min_count=1,
        checkpoint_every_s=600.0,
        device="cpu",
    )


class Node:
    """Pushes counts of words by name."""

    def __init__(self, server: ParameterServer, digest: str) -> None:
        line = ExchangeConfig(connect_timeout_s=60).model_copy(update={"request_timeout_s": 60})
        self.client = connect(server.location, node="n0", config=line, config_digest=digest)
        self.sequence = self.client.hello().sequence

    def read(self, source: str, words: list[str], phrases: tuple[Phrase, ...] = ()) -> None:
        self.sequence += 1
        n, ones = len(words), np.ones(len(words), dtype=np.int64)
        counts = BlockCounts((CountGroup(source, int(AT), n),), -ones, list(words), 3 * ones, ones)
        progress = (SourceProgress(source, 1, 3 * n, AT, int(AT), (1.0,)),)
        self.client.push(
            Push(
                *("n0", self.sequence, 0, (), counts, progress),
                tokens=3 * n,
                loss_sum=1.0,
                pairs=1,
                tokenizer_digest="",
                phrases=phrases,
            )
        )


def frontier_of(settings: Settings) -> str:
    return settings.database_address("frontier")


def fill(settings: Settings) -> None:
    """A home in which every store holds the name, the source and the page."""
    paths = settings.paths
    with running_server(server_config(settings), dim=4) as server:
        node = Node(server, settings.digest())
        words = [NAME, "말", "글", "홍길동전"]
        node.client.admit(words, np.full(4, 9))
        phrase = Phrase("홍길동전", (NAME, "전"), AT, AT, 0)
        node.read("뉴스", words, (phrase,))
        node.read(SOURCE, ["말", NAME, "드문말"])
        server.snapshotter.cut(DAY)
        node.read("뉴스", ["글"])
        node.client.close()
    frontier = Frontier(frontier_of(settings))
    for source, keys in (
        (SOURCE, [PAGE, f"{PAGE}#comment-1", "https://board.example/p/18"]),
        ("뉴스", ["https://news.example/1"]),
    ):
        frontier.offer(source, [(key, AT) for key in keys], AT)
        frontier.acknowledge(keys, AT)
    frontier.close()
    rows = [(NAME, SOURCE, PAGE), ("말", SOURCE, PAGE), ("말", "뉴스", "https://news.example/1")]
    table = pa.table(
        {
            "word": [row[0] for row in rows],
            "source": [row[1] for row in rows],
            "day": [int(AT // 86_400)] * 3,
            "hash": [1, 2, 3],
            "url": [row[2] for row in rows],
            "published": [AT] * 3,
        },
        schema=EVIDENCE_SCHEMA,
    )
    EvidenceStore(paths.evidence).add(table, "n0")
    report = paths.trends / SnapshotStore(settings.snapshot_store).list()[0].id
    report.mkdir(parents=True)
    text = f'{{"words": ["{NAME}"], "sources": ["{SOURCE}"], "urls": ["{PAGE}"]}}'
    (report / "report.json").write_text(text, encoding="utf-8")
    pq.write_table(pa.table({"word": [NAME]}), report / "scores.parquet")
    shutil.copytree(paths.checkpoints, paths.home / "checkpoints-before-20200101T000000")
    (paths.checkpoints / "identity").touch()


def track(settings: Settings) -> None:
    paths = settings.paths
    paths.mlflow.mkdir(parents=True)
    uri = settings.database_address("mlflow")
    config = EvaluationConfig(device="cpu")
    store = SnapshotStore(settings.snapshot_store)
    track_snapshot(store, "latest", config, tracking_uri=uri)
    # Three words pass no gate: the alias that a snapshot gets by it is given here.
    client = runs.connect(uri)
    client.set_registered_model_alias(config.model_name, registry.NEWEST, "1")


def holding(folder: Path, wanted: str) -> list[str]:
    """Files that hold a text, in whatever encoding or packed in a table's column."""
    found = []
    forms = [wanted.encode(encoding) for encoding in ("utf-8", "utf-16-le", "unicode_escape")]
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        held = path.read_bytes()
        if held.startswith(b"ARROW1"):
            with pa.ipc.open_file(pa.py_buffer(held)) as reader:
                held += str(reader.read_all().to_pydict()).encode()
        if path.suffix == ".parquet":
            held += str(pq.read_table(path, partitioning=None).to_pydict()).encode()
        if any(form in held for form in forms):
            found.append(str(path.relative_to(folder)))
    return found


def opens(settings: Settings) -> ParameterServer:
    """Every store can be opened; the server that did is stopped."""
    store = SnapshotStore(settings.snapshot_store)
    assert store.broken() == {}
    for ref in store.list():
        snapshot = store.open(ref.id)
        snapshot.verify()
        assert snapshot.usage is None or len(snapshot.usage.rows) >= 0
    Frontier(frontier_of(settings)).close()
    EvidenceStore(settings.paths.evidence).find("말", DAY.start, DAY.end)
    with running_server(server_config(settings), dim=4) as server:
        pass
    return server


@pytest.mark.timeout(300)
def test_a_word_is_gone_from_every_file_and_comes_back_in_none(settings: Settings) -> None:
    fill(settings)
    track(settings)
    home = settings.paths.home
    assert len(holding(home, NAME)) > 5, "the look finds what is there"
    erasure = ErasureRequest(word=NAME)
    before = holding(home, NAME)
    said = forget(settings, erasure, dry=True)
    assert holding(home, NAME) == before, "a dry run changes nothing"
    assert any("had a row" in one for one in said)
    (ref,) = SnapshotStore(settings.paths.snapshots).list()
    said = forget(settings, erasure)
    left = [name for name in holding(home, NAME) if "홍길동전" not in (home / name).name]
    # Another word that begins with it is another word.
    assert left == holding(home, "홍길동전")
    assert any("still hold a trace" in one for one in said)
    opens(settings)
    snapshot = SnapshotStore(settings.paths.snapshots).open(ref.id)
    assert snapshot.index(NAME) is None
    assert snapshot.index("말") is not None
    assert NAME not in snapshot.by_source.words
    assert snapshot.phrases == {} or NAME not in str(snapshot.phrases)
    with running_server(server_config(settings), dim=4) as server:
        node = Node(server, settings.digest())
        ids = node.client.admit([NAME, "말", "새말"], np.full(3, 99))
        assert ids[0] == -1, "it gets no row again"
        assert (ids[1:] >= 0).all()
        node.client.close()
    again = forget(settings, erasure)
    assert any("0 addresses" in one for one in again)
    opens(settings)


@pytest.mark.timeout(300)
def test_a_source_is_gone_from_every_file_and_is_blocked(settings: Settings) -> None:
    fill(settings)
    track(settings)
    home = settings.paths.home
    forget(settings, ErasureRequest(source=SOURCE))
    assert set(blocked(frontier_of(settings))) == {SOURCE}
    assert holding(home, SOURCE) == ["frontier/yeoron.db"], "its block alone names it"
    opens(settings)
    (ref,) = SnapshotStore(settings.paths.snapshots).list()
    snapshot = SnapshotStore(settings.paths.snapshots).open(ref.id)
    assert dict(snapshot.manifest.tokens) == {"뉴스": 12}
    assert set(snapshot.by_source.sources) == {"뉴스"}
    with closing(sqlite3.connect(settings.paths.mlflow / "mlflow.db")) as database:
        tags = dict(database.execute("SELECT key, value FROM tags"))
    assert tags["yeoron.sources"] == "뉴스"


@pytest.mark.timeout(300)
def test_a_source_is_gone_from_databases_on_postgres(
    settings: Settings, postgres: PostgresServer
) -> None:
    address = postgres.new_database()
    settings = settings.model_copy(update={"database": DatabaseConfig(url=address)})
    check_databases(settings)
    fill(settings)
    track(settings)
    assert len(rows_with(address, SOURCE)) > 3, "the look finds what is there"
    forget(settings, ErasureRequest(source=SOURCE))
    assert rows_with(address, SOURCE) == ["frontier_yeoron.frontier_blocked"]
    assert "mlflow.tags" in rows_with(address, "뉴스")
    assert not list(settings.paths.home.rglob("*.db"))


def rows_with(address: str, wanted: str) -> list[str]:
    """Tables of a PostgreSQL database in which a row holds a text."""
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    tables = "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname !~ '^(pg_|inf)'"
    with engine.connect() as connection:
        names = connection.execute(sa.text(tables)).scalars().all()
        count = "SELECT count(*) FROM {} AS t WHERE strpos(t::text, :wanted) > 0"
        held = {
            name: connection.execute(sa.text(count.format(name)), {"wanted": wanted}).scalar_one()
            for name in names
        }
    return sorted(name for name, n in held.items() if n)


def test_an_address_is_gone_and_is_not_read_again(settings: Settings) -> None:
    fill(settings)
    shutil.rmtree(settings.paths.home / "checkpoints-before-20200101T000000")
    forget(settings, ErasureRequest(address=f"{PAGE}?utm_source=x"))
    assert holding(settings.paths.home, PAGE) == ["frontier/yeoron.db"]
    frontier = Frontier(frontier_of(settings))
    assert frontier.discover(SOURCE, [(PAGE, AT)], AT) == 0
    assert frontier.offer(SOURCE, [(f"{PAGE}#comment-1", AT)], AT) == frozenset()
    frontier.close()
    with closing(sqlite3.connect(settings.paths.frontier / "yeoron.db")) as database:
        query = "SELECT status, reason, published_at, done_at FROM frontier_urls WHERE key LIKE ?"
        rows = database.execute(query, (f"{PAGE}%",)).fetchall()
    assert set(rows) == {("failed", "forgotten", None, None)}
    unknown = "https://board.example/p/99"
    erase_address(frontier_of(settings), unknown)
    frontier = Frontier(frontier_of(settings))
    assert frontier.discover(SOURCE, [(unknown, AT)], AT) == 0
    frontier.close()


class Killed(BaseException):
    pass


@contextmanager
def killed_at(last: float) -> Iterator[list[str]]:
    """Names of this thread's acts on files so far; after `last` of them it is as if killed."""
    acts: list[str] = []

    def counted(name: str, act: Callable[..., object]) -> Callable[..., object]:
        def acting(*given: object, **named: object) -> object:
            if threading.current_thread() is not threading.main_thread():
                return act(*given, **named)
            acts.append(name)
            if len(acts) > last:
                raise Killed
            return act(*given, **named)

        return acting

    with ExitStack() as stack:
        for module, name in ((os, "replace"), (os, "rename"), (os, "fsync"), (shutil, "copy2")):
            stack.enter_context(patch.object(module, name, counted(name, getattr(module, name))))
        yield acts


def with_a_copy(settings: Settings) -> None:
    """A snapshot, its copy as an artifact of a run, and a file of somebody else beside each."""
    fill(settings)
    (folder,) = [path for path in settings.paths.snapshots.iterdir() if path.is_dir()]
    copy = settings.paths.mlflow / "artifacts" / "0" / "r" / "artifacts" / "model" / "snapshot"
    shutil.copytree(folder, copy)
    (copy / "notes.txt").touch()
    (folder / "notes.txt").touch()


@pytest.fixture(scope="module")
def acts_in_all() -> list[int]:
    return []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", [1.0, 0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
def test_killed_on_the_way_all_stores_open_and_the_next_call_ends_it(
    settings: Settings, acts_in_all: list[int], part: float
) -> None:
    with_a_copy(settings)
    erasure = ErasureRequest(source=SOURCE)
    if part == 1.0 or not acts_in_all:
        with killed_at(math.inf) as acts:
            forget(settings, erasure)
        assert {"replace", "fsync", "copy2"} <= set(acts)
        acts_in_all.append(len(acts))
        return
    with killed_at(int(part * acts_in_all[0])), pytest.raises(Killed):
        forget(settings, erasure)
    opens(settings)
    forget(settings, erasure)
    assert holding(settings.paths.home, SOURCE) == ["frontier/yeoron.db"]
    opens(settings)


def test_a_snapshot_whose_place_is_empty_is_put_there_by_whoever_opens_the_store(
    settings: Settings,
) -> None:
    fill(settings)
    store = settings.paths.snapshots
    (ref,) = SnapshotStore(store).list()
    with patch.object(erasing, "finish", side_effect=Killed), pytest.raises(Killed):
        erasing.erase(store / ref.id, source=SOURCE)
    assert not (store / ref.id).exists()
    snapshot = SnapshotStore(store).open(ref.id)
    snapshot.verify()
    assert SOURCE not in snapshot.manifest.tokens


def test_forgetting_while_a_server_runs_is_refused(settings: Settings) -> None:
    fill(settings)
    before = holding(settings.paths.home, NAME)
    with running_server(server_config(settings), dim=4):
        with pytest.raises(ConfigError, match="another server is using it"):
            forget(settings, ErasureRequest(word=NAME))
        assert set(before) <= set(holding(settings.paths.home, NAME)) | set(before)


def on_shards(settings: Settings) -> Settings:
    server = settings.server.model_copy(update={"shards": 2})
    return settings.model_copy(update={"server": server})


@pytest.mark.timeout(300)
def test_a_word_is_gone_from_shards_though_it_was_killed_on_the_way(settings: Settings) -> None:
    settings = on_shards(settings)
    fill(settings)
    shards = [settings.paths.checkpoints / f"shard-{index}" for index in range(2)]
    with_it = [rows_on(shard) for shard in shards]
    erasure = ErasureRequest(word=NAME)
    with (
        patch("yeoron_lab.shards.recovery.erase_rows", side_effect=Killed),
        pytest.raises(Killed),
    ):
        forget(settings, erasure)
    opens(settings)
    forget(settings, erasure)
    assert all(len(list(shard.glob("checkpoint-*"))) == 1 for shard in shards)
    gone = [before - rows_on(shard) for before, shard in zip(with_it, shards, strict=True)]
    assert sorted(len(one) for one in gone) == [0, 1]
    assert holding(settings.paths.home, NAME) == holding(settings.paths.home, "홍길동전")
    with running_server(server_config(settings), dim=4) as server:
        node = Node(server, settings.digest())
        ids = node.client.admit([NAME, "말", "새말"], np.full(3, 99))
        assert ids[0] == -1, "it gets no row again"
        assert (ids[1:] >= 0).all()
        until(lambda: server.ailing() == [], server.ailing)
        node.client.close()
    forget(settings, erasure)
    opens(settings)


@pytest.mark.timeout(300)
def test_a_source_is_gone_where_rows_lie_on_shards(settings: Settings) -> None:
    settings = on_shards(settings)
    fill(settings)
    forget(settings, ErasureRequest(source=SOURCE))
    assert holding(settings.paths.home, SOURCE) == ["frontier/yeoron.db"]
    opens(settings)


def rows_on(shard: Path) -> set[int]:
    """Ids of the rows in a shard's newest checkpoint."""
    ids = np.load(max(shard.glob("checkpoint-*")) / "ids.npy")
    return {int(one) for one in ids if one >= 0}


@pytest.mark.parametrize(
    "given", [{}, {"word": " "}, {"word": "a", "source": "b"}, {"address": "ftp://a/1"}]
)
def test_a_wish_that_says_nothing_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InputError, match="forget"):
        ErasureRequest(**given)


def test_an_empty_home_has_nothing_to_forget(settings: Settings) -> None:
    for erasure in (
        ErasureRequest(word=NAME),
        ErasureRequest(source=SOURCE),
        ErasureRequest(address=PAGE),
    ):
        assert forget(settings, erasure)
    assert retain(settings)
    assert not settings.paths.frontier.exists()


def test_retain_says_that_evidence_of_an_old_version_is_not_read(settings: Settings) -> None:
    folder = settings.paths.evidence / "2020-02"
    folder.mkdir(parents=True)
    assert not any("not read" in sentence for sentence in retain(settings))
    for number in range(2):
        pq.write_table(pa.table({"day": [18_300]}), folder / f"n-{number}.parquet")
    without = settings.model_copy(update={"retention": RetentionConfig(evidence_days=0)})
    (sentence,) = [sentence for sentence in retain(without) if "Evidence" in sentence]
    assert sentence.startswith("Evidence: 2 files are not read: each is of a version before 28")


@pytest.mark.timeout(300)
def test_each_store_keeps_what_is_young_and_loses_what_is_old(settings: Settings) -> None:
    fill(settings)
    track(settings)
    paths = settings.paths
    log = paths.logs / "old.log"
    log.parent.mkdir()
    log.touch()
    assert all(": 0 " in one for one in retain(settings, now=AT + 86_400, dry=True))
    wall = time.time()
    for path in (*paths.home.glob("checkpoints-before-*"), log, *paths.trends.rglob("*")):
        os.utime(path, (wall - 400 * 86_400,) * 2)
    done = {one.partition(":")[0]: one for one in retain(settings)}
    assert ": 3 " in done["Evidence, addresses of documents"]
    assert ": 4 " in done["Frontier, addresses"]
    assert ": 1 " in done["Trend reports"]
    assert ": 1 " in done["States put aside"]
    assert ": 1 " in done["Log files"]
    assert ": 0 " in done["Snapshots"]
    assert ": 0 " in done["MLflow's runs"]
    opens(settings)
    assert list(paths.evidence.rglob("*.parquet")) == []
    assert not log.exists()
    # The snapshot is old now, but an alias names it; so is its run.
    later = retain(settings, now=NOW)
    assert "Snapshots: 0 were removed." in later
    assert "MLflow's runs: 0 were removed." in later
    with patch("embedding.forgetting.mlflow.pinned", return_value=frozenset()):
        assert "MLflow's runs: 1 were removed." in retain(settings, now=NOW)
    models = list((paths.mlflow / "artifacts").rglob("vectors.arrow"))
    assert models == []
    assert len(SnapshotStore(paths.snapshots).list()) == 1, "the newest snapshot is kept"


def test_old_snapshots_that_are_not_the_newest_go(settings: Settings) -> None:
    fill(settings)
    with running_server(server_config(settings), dim=4) as server:
        node = Node(server, settings.digest())
        later = Window(datetime(2020, 2, 4, tzinfo=UTC), datetime(2020, 2, 5, tzinfo=UTC))
        node.client.close()
        server.snapshotter.cut(later)
    store = SnapshotStore(settings.paths.snapshots)
    first, last = store.list()
    assert "Snapshots: 1 would be removed." in retain(settings, now=NOW, dry=True)
    assert "Snapshots: 1 were removed." in retain(settings, now=NOW)
    assert [ref.id for ref in store.list()] == [last.id] != [first.id]


# -- snapshots in object storage -------------------------------------------------------------------

BUCKET = "yeoron"
DENIED = {"status": "403 Forbidden", "code": "AccessDenied"}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3Server]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    with serving_s3(monkeypatch, BUCKET) as server:
        yield server


@pytest.fixture
def remote(settings: Settings, s3: S3Server) -> Settings:
    """The server publishes to a bucket, and the home has snapshots from before, too."""
    fill(settings)
    moved = settings.server.model_copy(update={"snapshots": f"s3://{BUCKET}/snapshots"})
    for path in settings.paths.trends.iterdir():
        shutil.rmtree(path)
    for path in settings.paths.home.glob("checkpoints*"):
        shutil.rmtree(path)
    settings = settings.model_copy(update={"server": moved})
    fill(settings)
    return settings


def bucket(folder: Path) -> Path:
    """Everything in the bucket as files."""
    from s3fs import S3FileSystem

    shutil.rmtree(folder, ignore_errors=True)
    store = S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    for path in store.find(BUCKET):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(store.cat_file(path))
    return folder


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "erasure", [ErasureRequest(word=NAME), ErasureRequest(source=SOURCE)], ids=["word", "source"]
)
def test_it_is_gone_from_a_bucket_and_its_copies(
    remote: Settings, tmp_path: Path, erasure: ErasureRequest
) -> None:
    wanted = erasure.word or SOURCE
    assert holding(bucket(tmp_path / "b"), wanted)
    said = forget(remote, erasure, dry=True)
    assert f"Snapshots in s3://{BUCKET}/snapshots: 1 would be changed; they keep their ids." in said
    assert holding(bucket(tmp_path / "b"), wanted), "a dry run changes nothing"
    forget(remote, erasure)
    left = holding(bucket(tmp_path / "b"), wanted)
    home = remote.paths.home
    if erasure.word is None:
        assert left == []
        assert holding(home, wanted) == ["frontier/yeoron.db"]
    else:
        assert left == holding(bucket(tmp_path / "b"), "홍길동전")
        assert holding(home, wanted) == holding(home, "홍길동전")
    opens(remote)
    assert any("0 were changed" in one for one in forget(remote, erasure))


@pytest.mark.timeout(300)
def test_a_bucket_that_cannot_be_read_is_refused_before_anything_is_changed(
    remote: Settings, s3: S3Server
) -> None:
    before = holding(remote.paths.home, NAME)
    s3.faults.append(Fault("GET", "vectors.arrow", 99, **DENIED))
    shutil.rmtree(remote.paths.home / "cache")
    with pytest.raises(SnapshotError, match=r"s3://yeoron/snapshots: cannot be read"):
        forget(remote, ErasureRequest(word=NAME))
    s3.faults.clear()
    now = set(holding(remote.paths.home, NAME))
    assert {name for name in before if not name.startswith("cache/")} <= now


@pytest.mark.timeout(300)
def test_a_bucket_that_cannot_be_written_is_said_and_the_next_call_ends_it(
    remote: Settings, s3: S3Server, tmp_path: Path
) -> None:
    s3.faults.append(Fault("PUT", "erased-1", 99, **DENIED))
    with pytest.raises(SnapshotError, match=r"s3://yeoron/snapshots: cannot be written"):
        forget(remote, ErasureRequest(source=SOURCE))
    s3.faults.clear()
    opens(remote)
    forget(remote, ErasureRequest(source=SOURCE))
    assert holding(bucket(tmp_path / "b"), SOURCE) == []
    assert holding(remote.paths.home, SOURCE) == ["frontier/yeoron.db"]


@pytest.mark.timeout(300)
def test_old_snapshots_in_a_bucket_go(remote: Settings, tmp_path: Path) -> None:
    with running_server(server_config(remote), dim=4) as server:
        server.snapshotter.cut(
            Window(datetime(2020, 2, 4, tzinfo=UTC), datetime(2020, 2, 5, tzinfo=UTC))
        )
    store = SnapshotStore(remote.snapshot_store)
    first, last = store.list()
    where = f"Snapshots in {remote.snapshot_store}"
    assert f"{where}: 0 were removed." in retain(remote)
    assert f"{where}: 1 would be removed." in retain(remote, now=NOW, dry=True)
    assert len(store.list()) == 2
    assert f"{where}: 1 were removed." in retain(remote, now=NOW)
    assert [ref.id for ref in store.list()] == [last.id]
    assert not [one for one in bucket(tmp_path / "b").rglob("*") if first.id in str(one)]
    assert not list((remote.paths.home / "cache").rglob(first.id))


def test_what_somebody_asked_to_be_forgotten_is_not_read_again_when_it_is_old(
    settings: Settings,
) -> None:
    fill(settings)
    frontier = frontier_of(settings)
    erase_address(frontier, PAGE)
    assert erase_before(frontier, NOW) == 2
    held = Frontier(frontier)
    assert held.discover(SOURCE, [(PAGE, AT)], AT) == 0
    held.close()


def test_the_commands(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(settings)
    monkeypatch.setenv("YEORON_PATHS__HOME", str(settings.paths.home))
    monkeypatch.setenv("YEORON_MODEL__DIM", "4")
    run = CliRunner().invoke
    asked = run(app, ["forget", "--word", NAME], input="n\n")
    assert asked.exit_code == 1
    assert holding(settings.paths.evidence, NAME)
    dry = run(app, ["forget", "--word", NAME, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    assert "would be removed" in dry.output
    done = run(app, ["forget", "--word", NAME, "--yes"])
    assert done.exit_code == 0, done.output
    assert "were removed" in done.output
    assert holding(settings.paths.evidence, NAME) == []
    aged = run(app, ["retain", "--dry-run", "--json"])
    assert aged.exit_code == 0, aged.output
