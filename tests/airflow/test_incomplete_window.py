"""A window that was cut incomplete, in a real run: log, XCom, event, and the run's note."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import world

from embedding.kernel.records import WindowUnit
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from incomplete import incomplete_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
REASON = "it was cut before its nodes had sent how words were used in it"
DAG_FILE = """
from airflow.sdk import DAG
from embedding_airflow.assets import SNAPSHOTS
from embedding_airflow.operators.snapshot import CutSnapshot
from embedding_airflow.params import stream_params

with DAG("cut_alone", schedule=None, params=stream_params(), tags=["yeoron"]):
    CutSnapshot(task_id="cut_snapshot", outlets=[SNAPSHOTS])
"""


@pytest.fixture(scope="module")
def cut_alone(planted, airflow_home, tmp_path_factory):
    """A DAG that cuts; the server has cut these months before, January without its use."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    folder = tmp_path_factory.mktemp("world")
    (folder / "dags").mkdir()
    (folder / "dags" / "cut_alone.py").write_text(DAG_FILE, encoding="utf-8")
    store = incomplete_store(folder / "var" / "snapshots", planted)
    config = ServerConfig(snapshots=store.uri, window=WindowUnit.MONTH, min_count=1)
    with running_server(config, dim=24) as server, pytest.MonkeyPatch.context() as patch:
        place = {
            "port": int(server.location.rsplit(":", 1)[1]),
            "http_port": int(server.http_url.rsplit(":", 1)[1]),
            "window": "month",
        }
        path = world.write_settings(folder, ports={}, server=place)
        patch.setenv("YEORON_SETTINGS", str(path))
        bag = DagBag(dag_folder=str(folder / "dags"))
        manager = DagBundlesManager()
        manager.sync_bundles_to_db()
        sync_bag_to_db(bag, next(iter(manager.get_all_dag_bundles())).name, None)
        yield bag.dags["cut_alone"]


def cut(dag, window: str, day: int):
    return dag.test(logical_date=datetime(2021, 5, day, tzinfo=UTC), run_conf={"window": window})


def stored(run) -> tuple[str, list[str], list[dict[str, object]]]:
    """The note of a run, what its XCom says that is lacking, and the extras of its events.

    `DAG.test` ends a run without the scheduler, which calls the listeners: here they are called as
    it does, by Airflow's own manager, on the run in its session.
    """
    from airflow.listeners.listener import get_listener_manager
    from airflow.models.asset import AssetEvent
    from airflow.models.dagrun import DagRun
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    chosen = select(DagRun).where(DagRun.dag_id == run.dag_id, DagRun.run_id == run.run_id)
    hooks = get_listener_manager().hook
    for hook in (hooks.on_dag_run_running, hooks.on_dag_run_success, hooks.on_dag_run_success):
        with create_session() as session:
            found = session.scalar(chosen)
            found.dag = run.dag
            hook(dag_run=found, msg="")
    with create_session() as session:
        note = session.scalar(chosen).note
        rows = session.scalars(
            XComModel.get_many(run_id=run.run_id, dag_ids=run.dag_id, key="lacks")
        )
        lacks = [one for row in rows for one in XComModel.deserialize_value(row)]
        events = session.scalars(
            select(AssetEvent.extra).where(AssetEvent.source_run_id == run.run_id)
        )
        return note or "", lacks, list(events)


def test_the_log_the_xcom_the_event_and_the_note_say_it(cut_alone) -> None:
    run = cut(cut_alone, "2020-01", 1)
    assert str(run.state) == "success"
    note, lacks, (event,) = stored(run)
    assert REASON in lacks[0]
    assert event["lacks"] == lacks
    assert note.startswith("Window 2020-01 2020-01: ")
    assert note.count(REASON) == 1, "also where the scheduler says it twice"
    assert len(note) <= 1_000


def test_a_whole_window_has_its_name_alone(cut_alone) -> None:
    note, lacks, (event,) = stored(cut(cut_alone, "2020-02", 2))
    assert (note, lacks) == ("Window 2020-02", [])
    assert "lacks" not in event


def test_the_log_warns(cut_alone) -> None:
    """The task itself: what Airflow's supervisor does with its log is Airflow's."""
    from types import SimpleNamespace

    from embedding.settings import load_settings
    from embedding_airflow.assets import SNAPSHOTS

    pushed: dict[str, object] = {}
    context = {
        "params": {"window": "2020-01", "unit": "month"},
        "dag_run": SimpleNamespace(logical_date=None, run_after=datetime(2020, 2, 1, tzinfo=UTC)),
        "ti": SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value})),
        "outlet_events": {SNAPSHOTS: SimpleNamespace(extra={})},
    }
    task = cut_alone.get_task("cut_snapshot")
    warned: list[str] = []
    task.log.warning = lambda text, *values: warned.append(text % values)
    result = task.work(load_settings(), context)
    assert REASON in warned[0]
    assert result["lacks"] == pushed["lacks"] == warned
