"""A poisoned source is found, blocked and unlearnt by the DAG `rollback`, on real parts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import world

from waiting import until
from yeoron_lab.ports import lasting_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:(?s).*Port 8787 is already in use"),
]
MOMENT = iter(datetime(2022, 1, 1, tzinfo=UTC) + timedelta(minutes=i) for i in range(10_000))
LEARNS = {"learning_rate": 0.2, "sample": 0.01}
"""What so little text is learnt with: a model that is still at its start passes no gate."""
UNMEASURED = {"held_out": 0}
"""A held-out sample of so little text is a few words: whether it is predicted is chance."""
QUICK = {"idle_after_s": 5, "poll_s": 0.2, "time_limit_s": 400}


@pytest.fixture
def place(tmp_path, monkeypatch) -> Iterator[SimpleNamespace]:
    """A server in a process of its own, a Dask cluster, settings."""
    from embedding.cluster import stop_pool
    from embedding.settings import load_settings

    world.write_sources(tmp_path, pass_on=True)
    with world.dask_cluster(tmp_path) as (dask, dashboard):
        server = {
            "port": lasting_port(),
            "http_port": lasting_port(),
            "window": "month",
            "min_count": 1,
            "min_authors": 1,
            "min_sources": 1,
            "device": "cpu",
        }
        ports = {"dask": dask, "dask_dashboard": dashboard}
        path = world.write_settings(
            tmp_path, ports=ports, server=server, model=LEARNS, node=UNMEASURED
        )
        monkeypatch.setenv("YEORON_SETTINGS", str(path))
        settings = load_settings()
        with (tmp_path / "server.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "embedding.cli", "serve"], stderr=log, env=os.environ
            )
        try:
            _wait_ready(settings, process, tmp_path / "server.log")
            yield SimpleNamespace(folder=tmp_path, settings=settings, process=process)
            stop_pool(settings)
        finally:
            process.kill()
            process.wait(300)


def _wait_ready(settings: Any, process: subprocess.Popen, log: Any) -> None:
    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return httpx.get(settings.server_status_url, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    until(answers, log.read_text)


def run(dag_bag: Any, name: str, conf: dict[str, Any]) -> Any:
    done = dag_bag.dags[name].test(logical_date=next(MOMENT), run_conf=conf)
    states = {ti.task_id: str(ti.state) for ti in done.get_task_instances()}
    assert done.state == "success", states
    return done


def test_a_poisoned_source_is_unlearnt_and_stays_away(place, dag_bag):
    from embedding.cluster import blocked_sources
    from embedding.evaluation import registry, runs
    from embedding.snapshots.store import SnapshotStore

    settings = place.settings
    store = SnapshotStore(str(settings.paths.snapshots))
    client = runs.connect(settings.tracking_address)
    run(dag_bag, "opinion_stream", {**QUICK, "window": "2020-02"})
    (bad,) = store.list()
    assert set(store.manifest(bad.id).documents) == {"hani", "board"}
    run(dag_bag, "evaluate_snapshot", {"snapshot_id": bad.id})
    assert registry.holder(client, "yeoron", "newest") is not None

    asked = {"source": "board", "reason": "스팸"}
    run(dag_bag, "rollback", asked)
    assert [ref.id for ref in store.list()] == [bad.id], "a dry run changes nothing"
    run(dag_bag, "rollback", {**asked, "confirm": "nothing"})
    assert store.list() == []
    assert store.withdrawn()[bad.id].reason == "스팸"
    assert registry.holder(client, "yeoron", "newest") is None
    assert set(blocked_sources(settings)) == {"board"}
    status = httpx.get(settings.server_status_url, trust_env=False).json()
    assert "board" not in status["sources"]

    run(dag_bag, "opinion_stream", {**QUICK, "window": "2020-02"})
    (good,) = store.list()
    manifest = store.manifest(good.id)
    assert manifest.documents == {"hani": 60}
    assert manifest.tokens["hani"] == store.manifest(bad.id).tokens["hani"]
    run(dag_bag, "evaluate_snapshot", {"snapshot_id": good.id})
    assert registry.holder(client, "yeoron", "newest").tags["yeoron.snapshot"] == good.id


def test_back_to_a_snapshot_what_came_after_it_is_learnt_again_onto_what_it_holds(place, dag_bag):
    from embedding.snapshots.store import SnapshotStore

    store = SnapshotStore(str(place.settings.paths.snapshots))
    run(dag_bag, "opinion_stream", {**QUICK, "window": "2020-02"})
    (good,) = store.list()
    run(dag_bag, "opinion_stream", {**QUICK, "window": "2020-03"})
    after = store.list()[-1]
    assert after.parent == good.id
    run(dag_bag, "rollback", {"to": good.id, "reason": "되돌림", "confirm": good.id})
    assert [ref.id for ref in store.list()] == [good.id]
    run(dag_bag, "opinion_stream", {**QUICK, "window": "2020-03"})
    again = store.list()[-1]
    assert again.parent == good.id
    assert store.manifest(again.id).documents["hani"] == 5
