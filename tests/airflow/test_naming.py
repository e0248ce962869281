"""Names of windows on runs: what a run is about, from what is known when it starts."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from embedding_airflow.naming import on_dag_run_running, windows_of

WHEN = datetime(2020, 3, 1, 5, tzinfo=UTC)
STREAM = {"window", "unit", "window_start", "window_end"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("conf", "label"),
    [
        ({"window": "2020-02"}, "2020-02"),
        ({"unit": "day"}, "2020-02-29"),
        ({}, "2020-02-29"),
        ({"unit": "month"}, "2020-02"),
    ],
)
def test_a_run_of_the_stream_is_named_after_its_window(conf, label):
    assert windows_of(STREAM, conf, [], WHEN) == [label]


def test_without_a_unit_it_is_what_the_server_counts_in(monkeypatch):
    monkeypatch.setenv("YEORON_SERVER__WINDOW", "month")
    assert windows_of(STREAM, {}, [], WHEN) == ["2020-02"]


def test_a_window_that_is_none_has_no_name():
    assert windows_of(STREAM, {"window": "2020-02-30"}, [], WHEN) == []


def test_a_run_of_snapshots_is_named_after_its_events_or_its_snapshot():
    events = [{"window": "2020-01"}, {"window": "2020-02"}, {"window": "2020-01"}, {"id": "x"}]
    assert windows_of({"snapshot_id"}, {}, events, WHEN) == ["2020-01", "2020-02"]
    given = {"snapshot_id": "2020-02-a1b2c3d4"}
    assert windows_of({"snapshot_id"}, given, [], WHEN) == ["2020-02"]
    assert windows_of({"snapshot_id"}, {"snapshot_id": "latest"}, [], WHEN) == []
    assert windows_of({"corpora"}, {}, [], WHEN) == []


def dag_run(tags=("yeoron",), note=None, windows=("2020-02",)):
    dag = SimpleNamespace(tags=set(tags), params={"snapshot_id": "latest"})
    return SimpleNamespace(
        get_dag=lambda: dag,
        note=note,
        conf={},
        logical_date=None,
        run_after=WHEN,
        consumed_asset_events=[SimpleNamespace(extra={"window": name}) for name in windows],
    )


@pytest.mark.parametrize(
    ("run", "note"),
    [
        (dag_run(), "Window 2020-02"),
        (dag_run(windows=("2020-01", "2020-02")), "Windows 2020-01, 2020-02"),
        (dag_run(note="again, by hand"), "again, by hand"),
        (dag_run(tags=("other",)), None),
        (dag_run(windows=()), None),
    ],
)
def test_the_note_of_a_run(run, note):
    on_dag_run_running(run, "started")
    assert run.note == note


def test_the_note_of_a_run_on_an_incomplete_snapshot_says_what_it_lacks() -> None:
    run = dag_run()
    lacking = {"window": "2020-02", "lacks": ["2020-02: a.", "2020-02: b."]}
    run.consumed_asset_events = [SimpleNamespace(extra=lacking), SimpleNamespace(extra=lacking)]
    on_dag_run_running(run, "started")
    assert run.note == "Window 2020-02 2020-02: a. 2020-02: b."
