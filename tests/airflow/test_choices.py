"""What the run forms offer: what lies in the stores when a DAG is parsed."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from embedding.kernel.records import Calendar
from embedding_airflow.choices import Choices, FormSettings, choices

SOURCES = """
[[source]]
name = "hani"
kind = "feed"
url = "https://news.example/rss"

[[source]]
name = "청원"
kind = "replayed"
path = "petitions.jsonl.xz"
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home that the environment names, with nothing else said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "var"))
    monkeypatch.setenv("YEORON_PATHS__SOURCES", str(tmp_path / "sources.toml"))
    return tmp_path


@pytest.fixture
def published(home):
    """Two windows in a real store, the second cut twice and its first cut withdrawn."""
    from embedding.snapshots.store import SnapshotStore

    store = SnapshotStore(home / "var" / "snapshots")
    first = store.publish(snapshot_data(1, 1))
    bad = store.publish(snapshot_data(2, 2))
    good = store.publish(snapshot_data(2, 3))
    store.withdraw([bad.id], "a test")
    return first.id, good.id


def snapshot_data(month: int, count: int):
    """Two words of a month of 2020."""
    import numpy as np

    from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts

    window = Window.holding(datetime(2020, month, 3, tzinfo=UTC), WindowUnit.MONTH)
    start = int(window.start.timestamp())
    rows = np.eye(2, 4, dtype=np.float32)
    words = ("가나", "다라")
    ones = np.ones(2, np.int64)
    return SnapshotData(
        window=window,
        words=words,
        ids=np.arange(2, dtype=np.int64),
        counts=ones * count,
        last_seen=np.full(2, start + 5.0),
        vectors=rows,
        contexts=rows,
        by_source=WordCounts(list(words), ["hani"] * 2, np.full(2, start), ones, ones),
        tokens={"hani": 2},
        documents={"hani": 1},
    )


def test_nothing_is_there_yet(home):
    assert choices() == Choices()


def test_snapshots_windows_sources_and_corpora(home, published, monkeypatch):
    (home / "sources.toml").write_text(SOURCES, encoding="utf-8")
    (home / "petitions.jsonl.xz").write_bytes(b"")
    data = home / "data"
    data.mkdir()
    for name in ("english.txt.xz", "README.md", "notes.csv"):
        (data / name).write_bytes(b"")
    monkeypatch.setenv("YEORON_DATA", str(data))
    first, last = published
    assert choices() == Choices(
        snapshots=(last, first),
        windows=("2020-02", "2020-01"),
        sources=("hani", "청원"),
        corpora=(str(home / "petitions.jsonl.xz"), str(data / "english.txt.xz")),
    )


@pytest.mark.parametrize(
    "broken", ["[[source", "source = 3", 'source = ["a"]', "[[source]]\nname = 1"]
)
def test_a_broken_file_offers_nothing(home, broken):
    (home / "sources.toml").write_text(broken, encoding="utf-8")
    (home / "yeoron.toml").write_text("paths = 7", encoding="utf-8")
    (home / "var").write_text("no folder", encoding="utf-8")
    assert choices() == Choices()


def test_a_store_in_a_bucket_is_known_by_its_reports_and_not_asked(home, monkeypatch):
    from embedding.settings import load_settings
    from embedding.trends.storage import REPORT

    monkeypatch.setenv("YEORON_SERVER__SNAPSHOTS", "s3://bucket/snapshots")
    assert choices().snapshots == ()
    reports = load_settings().paths.trends
    for name in ("2020-01-aaaaaaaa", "2020-02-bbbbbbbb", ".publishing-1"):
        (reports / name).mkdir(parents=True)
        (reports / name / REPORT).write_text("{}", encoding="utf-8")
    (reports / "2020-03-cccccccc").mkdir()
    assert choices().snapshots == ("2020-02-bbbbbbbb", "2020-01-aaaaaaaa")
    assert choices().windows == ("2020-02", "2020-01")


@pytest.mark.parametrize("named", [True, False])
def test_the_settings_are_those_of_the_platform(tmp_path, monkeypatch, named):
    """By the environment, by the file, and by default, as `load_settings` has them."""
    from embedding.settings import load_settings

    monkeypatch.chdir(tmp_path)

    def agree():
        here, all_of_them = FormSettings.read(), load_settings()
        assert here.home == all_of_them.paths.home
        assert here.sources == all_of_them.paths.sources
        assert here.snapshots == all_of_them.snapshot_store
        assert Calendar.of(here.calendar) == all_of_them.server.calendar

    agree()
    file = tmp_path / ("mine.toml" if named else "yeoron.toml")
    text = '[paths]\nhome = "/srv/y"\nsources = "s.toml"\n[server]\nwindow = "week"\n'
    file.write_text(text, encoding="utf-8")
    if named:
        monkeypatch.setenv("YEORON_SETTINGS", str(file))
    agree()
    monkeypatch.setenv("YEORON_SERVER__WINDOW", "month")
    monkeypatch.setenv("YEORON_SERVER__SNAPSHOTS", "s3://bucket/snapshots")
    monkeypatch.setenv("YEORON_PATHS__HOME", "elsewhere")
    agree()


def test_a_form_offers_them_and_takes_others(home, published):
    from embedding_airflow.params import rollback_params, snapshot_params

    first, last = published
    (one,) = snapshot_params().values()
    assert one.schema["examples"] == ["latest", last, first]
    assert one.resolve(value="2019-01-abcdef01") == "2019-01-abcdef01"
    form = rollback_params()
    assert form["to"].schema["examples"] == ["nothing", last, first]
    assert form["since"].schema["examples"] == ["2020-02", "2020-01"]
    assert json.loads(json.dumps(form["source"].dump()))["schema"]["examples"] == []
