"""When a demo is done, and what it starts where Airflow dropped the event of a snapshot."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from embedding.kernel.errors import PlatformError
from embedding.kernel.records import Window
from embedding.settings import Settings
from yeoron_demo import watch as watching
from yeoron_demo.watch import (
    DROPPED_SECONDS,
    EVALUATE,
    STILL_SECONDS,
    STREAM,
    TREND,
    Watch,
    start_dropped,
    watch_until_done,
)

WINDOWS = [
    Window(datetime(2021, m, 1, tzinfo=UTC), datetime(2021, m + 1, 1, tzinfo=UTC)) for m in (1, 2)
]


class Recorded:
    """An Airflow that notes what is started."""

    def __init__(self) -> None:
        self.started: list[tuple[str, str, Any]] = []

    def trigger(self, dag: str, run_id: str, conf: Any) -> None:
        self.started.append((dag, run_id, conf))


def run(*snapshots: str, state: str = "success") -> dict[str, Any]:
    return {"state": state, "snapshots": list(snapshots)}


def watch(evaluated: list[Any], reported: list[Any]) -> Watch:
    status = {"windows": {"2021-01": {"snapshot": "a"}, "2021-02": {"snapshot": "b"}}}
    runs = {STREAM: [run(), run()], EVALUATE: evaluated, TREND: reported}
    return Watch(WINDOWS, status=status, runs=runs)


def test_a_demo_is_done_once_runs_about_every_snapshot_have_ended_well():
    assert watch([run("a"), run("b")], [run("a", "b")]).done
    assert not watch([run("a"), run("b", state="running")], [run("a", "b")]).done
    assert not watch([run("a")], [run("a", "b")]).done
    assert not watch([], []).done


def test_a_snapshot_without_a_run_is_started_after_a_while():
    airflow, seen = Recorded(), watch([run("a")], [run("a", "b")])
    for now in (0.0, DROPPED_SECONDS):
        start_dropped(seen, airflow, now)
    assert airflow.started == []
    start_dropped(seen, airflow, DROPPED_SECONDS + 1)
    assert airflow.started == [(EVALUATE, "demo__2021-02", {"snapshot_id": "b"})]


class Quiet:
    """A server, an Airflow and a supervisor that say nothing new."""

    def runs(self, dag: str) -> list[dict[str, Any]]:
        return []

    def states(self) -> dict[str, str]:
        return {}


def test_a_demo_has_failed_once_nothing_goes_on_however_long_it_takes(monkeypatch):
    settings, said = Settings(), {"documents": 0, "windows": {}}
    now = [0.0]

    def look(seen: Watch, *_: object) -> None:
        now[0] += 60.0
        if now[0] < 10 * STILL_SECONDS:
            said["documents"] += 1
        seen.status = {**said}

    monkeypatch.setattr(watching, "look", look)
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(watching.time, "sleep", lambda _: None)
    monkeypatch.setattr(watching, "memory", lambda _: 0)
    with pytest.raises(PlatformError, match="stands still since 900 s: 149 documents learnt"):
        watch_until_done(
            Watch(WINDOWS), settings, Quiet(), Quiet(), Console(file=io.StringIO()), documents=200
        )
    assert now[0] >= 11 * STILL_SECONDS


def test_while_a_run_is_under_way_nothing_is_started():
    airflow, seen = Recorded(), watch([run("a", state="running")], [run("a", "b")])
    for now in (0.0, 10 * DROPPED_SECONDS):
        start_dropped(seen, airflow, now)
    assert airflow.started == []
    seen.runs[EVALUATE] = [run("a")]
    start_dropped(seen, airflow, 11 * DROPPED_SECONDS)
    assert airflow.started == []
