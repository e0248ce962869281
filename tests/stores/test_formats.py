"""Stores that earlier trees wrote open here, and those of later ones are refused in a sentence.

An archive holds every store as one tree wrote it (`make.py`). Whoever changes a format adds an
archive of the tree before, and whatever opens it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from backup.conftest import (
    AT,
    DAY,
    WORDS,
    Pusher,
    frontier_address,
    home_settings,
    serving_home,
)
from embedding.crawl.frontier import Frontier
from embedding.discovery.proposals import rejected
from embedding.kernel.durable import unreadable
from embedding.kernel.errors import ConfigError, InputError, SnapshotError, YeoronError
from embedding.settings import Settings
from embedding.snapshots.evidence import EvidenceStore
from embedding.snapshots.store import SnapshotStore
from embedding.training import TrainRequest
from embedding.training import resume as resume_module
from embedding.training.resume import resuming
from embedding.trends import storage
from embedding.trends.report import build_report

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))


def test_there_is_an_archive() -> None:
    assert ARCHIVES, "it is kept in git, or no test below runs"


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path / "stores"


def facts(stores: Path) -> dict[str, dict]:
    return json.loads((stores / "facts.json").read_text("utf-8"))


def home(stores: Path, name: str = "home", shards: int = 1) -> Settings:
    return home_settings(stores / name, shards=shards)


OF_THE_TREE_BEFORE = pytest.mark.parametrize(
    "stores", ARCHIVES[-1:], ids=lambda path: path.name, indirect=True
)


@pytest.mark.slow
@pytest.mark.timeout(300)
@OF_THE_TREE_BEFORE
@pytest.mark.parametrize(("name", "shards"), [("home", 1), ("sharded", 2)])
def test_a_server_goes_on_from_its_checkpoint(stores, name: str, shards: int):
    held, settings = facts(stores)[name], home(stores, name, shards)
    with serving_home(settings) as server:
        assert server.status()["tokens"] == held["tokens"]
        assert server.status()["vocabulary"] == held["vocabulary"]
        node = Pusher(settings, server)
        assert node.sequence == held["sequence"]
        for mine, its in zip(node.rows(held["words"]), ("vectors", "contexts"), strict=True):
            np.testing.assert_array_equal(mine, np.array(held[its], np.float32))
        node.learn(WORDS)
        node.client.close()


@pytest.mark.parametrize("stores", ARCHIVES[:1], ids=lambda path: path.name, indirect=True)
def test_an_older_checkpoint_says_which_version_to_go_through(stores):
    with (
        pytest.raises(ConfigError, match="open it once with Yeoron of 30 November 2026"),
        serving_home(home(stores)),
    ):
        pass


def test_snapshots_open(stores):
    held, store = facts(stores)["snapshots"], SnapshotStore(home(stores).paths.snapshots)
    snapshot = store.open(held["last"])
    snapshot.verify()
    assert set(WORDS) <= set(snapshot.words)
    assert store.withdrawn()[held["first"]].reason == "a test"
    store.reinstate([held["first"]])
    assert [ref.id for ref in store.list()] == [held["first"], held["last"]]


@OF_THE_TREE_BEFORE
def test_evidence_is_found_and_joined_with_what_is_written_now(stores):
    store = EvidenceStore(home(stores).paths.evidence)
    (found,) = store.find("전세", DAY.start, DAY.end)
    assert found.url == "https://news.example/2"
    (old,) = store.folder.rglob("*.parquet")
    table = pq.read_table(old, partitioning=None).slice(0, 1)
    for at in range(9):
        url = table.schema.get_field_index("url")
        store.add(table.set_column(url, "url", [[f"https://a.example/{at}"]]), "n0")
    assert len(list(store.folder.rglob("*.parquet"))) < 9
    assert [one.url for one in store.find("전세", DAY.start, DAY.end)] == [found.url]


def test_a_report_is_read_and_the_same_one_is_found_to_be_there(stores):
    settings, held = home(stores), facts(stores)["snapshots"]
    folder = settings.paths.trends
    report = storage.load(folder, held["last"])
    store = SnapshotStore(settings.paths.snapshots)
    store.reinstate([held["first"]])
    # Settings of it may have gone since; a report is computed again then.
    again = replace(build_report(store, held["last"]), config_digest=report.config_digest)
    assert storage.dumps(again) == storage.dumps(report)
    storage.save(again, folder)
    assert storage.dumps(storage.load(folder, held["last"])) == storage.dumps(report)


def test_the_frontier_knows_its_addresses(stores):
    frontier = Frontier(frontier_address(home(stores)))
    assert frontier.discover("뉴스", [("https://news.example/1", AT)], AT) == 0
    frontier.close()


@OF_THE_TREE_BEFORE
def test_a_training_of_the_tree_before_is_found_again(stores):
    folder = stores / "training"
    marks = json.loads((folder / "state" / "training.json").read_text())
    corpus = folder / "corpus.txt"
    # The archive keeps neither path nor time.
    marks["request"]["corpus"] |= {"path": str(corpus), "changed_ns": corpus.stat().st_mtime_ns}
    (folder / "state" / "training.json").write_text(json.dumps(marks))
    with resuming(TrainRequest(corpus=corpus, state_dir=folder / "state")) as resume:
        assert resume is not None
        assert resume.resumed


MORNING: dict[str, dict[str, object]] = {
    "exchange": {"pulls": "rows", "cache_bytes": 0},
    "server": {"shards": 1, "split": "rows", "shards_dir": None},
    "topology": {"aggregators": 0, "server_groups": 1, "peer_timeout_s": 120.0},
}
"""Settings that were the core's own until 30 November 2026, in training.json."""


def without_laboratory(request: dict[str, Any]) -> dict[str, Any]:
    """A request of training.json as an installation without the laboratory writes it."""
    for section, values in request.items():
        kind = getattr(TrainRequest.model_fields[section].annotation, "ADDED", None)
        for name in {name for added in kind or () for name in added.model_fields}:
            del values[name]
    return request


@pytest.mark.parametrize("set_to", [None, ("server", "shards"), ("topology", "aggregators")])
@pytest.mark.parametrize("before", ["with", "without", "of the morning"])
@pytest.mark.parametrize("now", ["with", "without"])
def test_a_training_goes_on_where_the_laboratory_came_or_went(
    tmp_path, monkeypatch, before, now, set_to
):
    """What one side lacks is refused only where the other sets it to something."""
    if before == "without" and set_to:
        pytest.skip("it could not be set")
    corpus, state = tmp_path / "corpus.txt", tmp_path / "state"
    corpus.write_text("a b\n")
    request = TrainRequest(corpus=corpus, state_dir=state)
    with pytest.raises(InputError, match="cut off"), resuming(request):
        raise InputError("cut off")
    file = state / "training.json"
    content = json.loads(file.read_text())
    if before != "with":
        without_laboratory(content["request"])
    if before == "of the morning":
        for section, values in MORNING.items():
            content["request"][section] |= values
    if set_to:
        section, name = set_to
        content["request"][section][name] = 2
    file.write_text(json.dumps(content))
    if now == "without":
        marks = resume_module._marks
        monkeypatch.setattr(resume_module, "_marks", lambda given: without_laboratory(marks(given)))
    if set_to:
        sentence = f"begun with {section}.{name} 2, and now it is [01]"
        with pytest.raises(ConfigError, match=sentence), resuming(request):
            pass
    else:
        with resuming(request) as going_on:
            assert going_on is not None
            assert going_on.resumed


def test_rejected_sources_are_read(stores):
    assert rejected(home(stores).paths.rejected) == {}


# -- of later versions ---------------------------------------------------------------------------


def newer(file: Path, *keys: str) -> None:
    """A JSON file that says a later format."""
    content = json.loads(file.read_text("utf-8"))
    sealed = content.pop("digest", None) is not None
    at = content
    for key in keys:
        at = at[key]
    at["format"] = 99
    if sealed:
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        content["digest"] = hashlib.sha256(text.encode()).hexdigest()
    file.write_text(json.dumps(content), "utf-8")


NEWER = "format 99 is of a newer version of Yeoron"


@pytest.mark.parametrize("part", ["", "shard-1"])
def test_a_newer_checkpoint_is_refused(stores, part: str):
    settings = home(stores, "sharded", 2)
    for checkpoint in (settings.paths.checkpoints / part).glob("checkpoint-*"):
        newer(checkpoint / "manifest.json", "facts")
    with pytest.raises(YeoronError) as refused, serving_home(settings):
        pass
    assert part or NEWER in str(refused.value)


def test_a_newer_snapshot_is_refused(stores):
    held, store = facts(stores)["snapshots"], SnapshotStore(home(stores).paths.snapshots)
    newer(home(stores).paths.snapshots / held["last"] / "manifest.json")
    with pytest.raises(SnapshotError, match=NEWER):
        store.open(held["last"])
    assert NEWER in store.broken()[held["last"]]


@pytest.mark.parametrize("stores", ARCHIVES[:1], ids=lambda path: path.name, indirect=True)
def test_older_evidence_says_which_version_to_go_through(stores):
    with pytest.raises(SnapshotError, match="once with Yeoron of 30 November 2026"):
        EvidenceStore(home(stores).paths.evidence).find("전세", DAY.start, DAY.end)


def test_newer_evidence_is_refused(stores):
    store = EvidenceStore(home(stores).paths.evidence)
    (file,) = store.folder.rglob("*.parquet")
    table = pq.read_table(file, partitioning=None)
    pq.write_table(table.replace_schema_metadata({b"yeoron.format": b"99"}), file)
    with pytest.raises(SnapshotError, match=NEWER):
        store.find("전세", DAY.start, DAY.end)
    with pytest.raises(SnapshotError, match=NEWER):
        store.erase(word="전세")


def test_a_newer_report_is_refused(stores):
    held, folder = facts(stores)["snapshots"], home(stores).paths.trends
    newer(folder / held["last"] / "report.json")
    with pytest.raises(InputError, match=NEWER):
        storage.load(folder, held["last"])


def test_a_newer_frontier_is_refused(stores):
    settings = home(stores)
    with closing(sqlite3.connect(settings.paths.frontier / "yeoron.db")) as database:
        database.execute("UPDATE frontier_schema SET version = 99")
        database.commit()
    with pytest.raises(ConfigError, match="of version 99, this version reads version 1"):
        Frontier(frontier_address(settings))


def test_a_newer_training_is_refused(stores):
    folder = stores / "training"
    newer(folder / "state" / "training.json")
    request = TrainRequest(corpus=folder / "corpus.txt", state_dir=folder / "state")
    with pytest.raises(ConfigError, match=NEWER), resuming(request):
        pass


@pytest.mark.parametrize("found", [None, "1", 0, -1, 1.0, [], 2, 99])
def test_what_is_not_known_is_said(found):
    assert unreadable(1, (1,)) == ""
    assert unreadable(found, (1,))
