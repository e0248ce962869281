"""Which snapshots a run is about: those of the asset's events, else the param's."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts
from embedding_airflow.assets import SNAPSHOTS, TRENDS
from embedding_airflow.operators.snapshot import ChosenSnapshots, asked_ids


def events(*given: tuple[Any, dict[str, Any]]) -> Any:
    """What Airflow puts into the context of a run that these asset events started."""
    from airflow.sdk.execution_time.comms import AssetEventDagRunReferenceResult
    from airflow.sdk.execution_time.context import TriggeringAssetEventsAccessor

    return TriggeringAssetEventsAccessor.build(
        AssetEventDagRunReferenceResult(
            asset={"name": asset.name, "uri": asset.uri, "extra": {}},
            extra=extra,
            source_task_id="cut_snapshot",
            source_dag_id="opinion_stream",
            source_run_id="r",
            source_map_index=-1,
            source_aliases=[],
            timestamp=datetime.now(UTC),
        )
        for asset, extra in given
    )


def test_every_event_of_the_asset_counts_and_no_other():
    """Airflow gathers events that arrive close together into one run."""
    given = events(
        (SNAPSHOTS, {"id": "a", "window": "2020-01"}),
        (TRENDS, {"id": "x"}),
        (SNAPSHOTS, {"id": "b", "window": "2020-02"}),
        (SNAPSHOTS, {}),
    )
    assert asked_ids({"triggering_asset_events": given}) == ["a", "b"]
    assert asked_ids({"triggering_asset_events": events()}) == []


@pytest.fixture
def published(tmp_path, monkeypatch) -> list[str]:
    """Ids of three snapshots, oldest window first."""
    from embedding.snapshots.store import SnapshotStore

    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path))
    store = SnapshotStore(str(tmp_path / "snapshots"))
    refs = []
    for month in (1, 2, 3):
        window = Window.holding(datetime(2020, month, 3, tzinfo=UTC), WindowUnit.MONTH)
        start = int(window.start.timestamp())
        data = SnapshotData(
            window=window,
            words=("코로나", "방역"),
            ids=np.arange(2, dtype=np.int64),
            counts=np.array([9, 5], np.int64),
            last_seen=np.full(2, float(start)),
            vectors=np.eye(2, 4, dtype=np.float32),
            contexts=np.eye(2, 4, dtype=np.float32),
            by_source=WordCounts(
                words=["코로나"],
                sources=["뉴스"],
                windows=np.array([start], np.int64),
                counts=np.array([9], np.int64),
                documents=np.array([3], np.int64),
            ),
            tokens={"뉴스": 9},
            documents={"뉴스": 3},
            parent=refs[-1] if refs else None,
        )
        refs.append(store.publish(data).id)
    return refs


def choose(
    *ids: str, param: str = "latest", unreported: bool = False, run_type: str = "manual"
) -> list[str]:
    from embedding.settings import load_settings

    given = events(*((SNAPSHOTS, {"id": one}) for one in ids))
    context: Any = {
        "triggering_asset_events": given,
        "params": {"snapshot_id": param},
        "dag_run": SimpleNamespace(run_type=run_type),
    }
    chosen = ChosenSnapshots(task_id="choose", unreported=unreported)
    return chosen.work(load_settings(), context)


def test_events_go_before_the_param_in_the_order_of_windows(published):
    first, second, third = published
    assert choose(second, first, second, param=third) == [first, second]


def test_by_hand_the_param_counts(published):
    assert choose() == [published[-1]]
    assert choose(param=published[0]) == [published[0]]


def test_one_that_is_gone_is_left_out_and_none_at_all_is_refused(published):
    from airflow.sdk.exceptions import AirflowFailException

    assert choose(published[1], "gone") == [published[1]]
    with pytest.raises(AirflowFailException, match="gone"):
        choose("gone")


def test_an_empty_store_says_what_to_run(tmp_path, monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path))
    with pytest.raises(AirflowFailException, match="opinion_stream"):
        choose()


def amended(tmp_path, first: str) -> str:
    """A revision of the first snapshot."""
    from embedding.snapshots.store import SnapshotStore

    store = SnapshotStore(str(tmp_path / "snapshots"))
    old = store.open(first)
    data = SnapshotData(
        window=old.manifest.as_window(),
        words=list(old.words),
        ids=old.ids,
        counts=old.counts,
        last_seen=old.last_seen,
        vectors=old.vectors,
        contexts=old.contexts,
        by_source=old.by_source,
        tokens={"뉴스": 9},
        documents={"뉴스": 4},
    )
    return store.publish(data, revision=2).id


def test_an_event_of_a_snapshot_that_was_amended_since_stands_for_its_revision(published, tmp_path):
    again = amended(tmp_path, published[0])
    assert choose(published[0]) == [again]


def test_with_an_event_all_that_has_no_report_is_reported_and_what_is_compared_with_it(
    published, tmp_path
):
    from embedding.settings import load_settings
    from embedding.trends.storage import REPORT

    assert choose(published[1], unreported=True) == published
    for name in published:
        folder = load_settings().paths.trends / name
        folder.mkdir(parents=True)
        (folder / REPORT).write_text("{}")
    assert choose(published[2], unreported=True) == published[2:]
    again = amended(tmp_path, published[0])
    assert choose(published[2], unreported=True) == [again, *published[1:]]
    assert choose(param=published[1], unreported=True) == [published[1]], "by hand: what was named"


def test_the_clock_begins_reports_of_what_was_amended_and_of_nothing_else(published, tmp_path):
    """A revision that the server makes by itself brings no event."""
    from airflow.sdk.exceptions import AirflowSkipException

    from embedding.settings import load_settings
    from embedding.trends.storage import REPORT

    for name in published:
        folder = load_settings().paths.trends / name
        folder.mkdir(parents=True)
        (folder / REPORT).write_text("{}")
    with pytest.raises(AirflowSkipException, match="has its report"):
        choose(unreported=True, run_type="scheduled")
    again = amended(tmp_path, published[0])
    assert choose(unreported=True, run_type="scheduled") == [again, published[1]]
