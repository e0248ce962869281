"""Whole DAG runs on the real parts: Dask, a node, the parameter server, snapshots, MLflow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import world

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    # Other Dask clusters may run on this machine; these take any free port.
    pytest.mark.filterwarnings("ignore:(?s).*Port 8787 is already in use"),
]
MOMENT = iter(datetime(2021, 1, 1, tzinfo=UTC) + timedelta(minutes=i) for i in range(10_000))
FIGURES = {
    *("words_per_second", "loss", "held_out_loss", "train_seconds", "peak_memory_bytes"),
    *("bytes_per_token", "bytes_pushed_per_token", "bytes_pulled_per_token"),
    *("dropped_tokens", "dropped_share", "staleness", "policy_switches"),
    *("lbfgs_rounds", "lbfgs_tokens", "words", "nll"),
}
"""What every training is compared by."""
QUICK = {"window": "2020-02", "idle_after_s": 8, "poll_s": 0.2, "time_limit_s": 400}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Server, cluster and settings for the runs of this module."""
    from embedding.cluster import stop_pool
    from embedding.kernel.records import WindowUnit
    from embedding.server.config import ServerConfig
    from embedding.server.service import running_server
    from embedding.settings import load_settings

    folder = tmp_path_factory.mktemp("world")
    world.write_sources(folder)
    config = ServerConfig(
        snapshots=str(folder / "var" / "snapshots"),
        window=WindowUnit.MONTH,
        min_count=1,
        min_authors=1,
        min_sources=1,
        device="cpu",
    )
    with (
        world.dask_cluster(folder) as (dask, dashboard),
        running_server(config, dim=world.DIM) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        ports = {"dask": dask, "dask_dashboard": dashboard}
        place = {
            "port": int(server.location.rsplit(":", 1)[1]),
            "http_port": int(server.http_url.rsplit(":", 1)[1]),
            "window": "month",
        }
        path = world.write_settings(folder, ports=ports, server=place)
        patch.setenv("YEORON_SETTINGS", str(path))
        yield SimpleNamespace(folder=folder, server=server, settings=load_settings())
        stop_pool(load_settings())


def run(dag_bag: Any, name: str, conf: dict[str, Any], **given: Any) -> Any:
    """One run of a DAG; it logs failures instead of raising, so look at its state."""
    return dag_bag.dags[name].test(logical_date=next(MOMENT), run_conf=conf, **given)


def states(dag_run: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for ti in dag_run.get_task_instances():
        found.setdefault(ti.task_id, set()).add(str(ti.state))
    return found


def xcom(dag_run: Any, task: str, key: str = "return_value") -> list[Any]:
    """Values that the task instances of `task` left, in the order of their map index."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        rows = session.execute(
            select(XComModel.value)
            .where(
                XComModel.dag_id == dag_run.dag_id,
                XComModel.run_id == dag_run.run_id,
                XComModel.task_id == task,
                XComModel.key == key,
            )
            .order_by(XComModel.map_index)
        )
        return [_plain(row[0]) for row in rows]


def _plain(value: Any) -> Any:
    """An XCom's value: JSON, but links are stored as they are."""
    return json.loads(value) if isinstance(value, str) and value[:1] in '[{"' else value


def asset_events(uri: str) -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = select(AssetEvent.extra).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        return [row[0] for row in session.execute(found.where(AssetModel.uri == uri))]


@pytest.fixture(scope="module")
def streamed(place: SimpleNamespace, dag_bag: Any) -> Any:
    """One whole run of `opinion_stream` for February 2020."""
    dag_run = run(dag_bag, "opinion_stream", QUICK)
    assert dag_run.state == "success", states(dag_run)
    return dag_run


def test_a_window_is_crawled_learnt_and_cut(place, streamed):
    (pool,) = xcom(streamed, "attach_pool")
    assert (pool["nodes"], pool["started"]) == (["yeoron-node-0"], ["yeoron-node-0"])
    assert xcom(streamed, "source_groups") == [
        [{"group": "뉴스", "sources": ["hani"]}, {"group": "게시판", "sources": ["board"]}]
    ]
    news, board = xcom(streamed, "crawl")
    assert (news["group"], news["passed"], news["idle"]) == ("뉴스", ["hani"], [])
    assert (board["group"], board["passed"], board["idle"]) == ("게시판", [], ["board"])
    assert news["documents"] >= 60
    assert board["documents"] == 40
    (ref,) = xcom(streamed, "cut_snapshot")
    assert ref["window_start"].startswith("2020-02-01")
    assert ref["words"] > 50


def test_mapped_tasks_are_named_after_their_group(streamed):
    names = {ti.rendered_map_index for ti in streamed.get_task_instances() if ti.task_id == "crawl"}
    assert names == {"뉴스", "게시판"}


def test_the_snapshot_is_an_event_of_the_asset(streamed):
    (ref,) = xcom(streamed, "cut_snapshot")
    event = {"id": ref["id"], "window": "2020-02", "parent": None}
    assert event in asset_events("yeoron://snapshots/")


def test_links_are_there_for_each_task(place, streamed):
    for task in ("attach_pool", "crawl", "cut_snapshot"):
        assert set(xcom(streamed, task, "_link_DaskLink")) == {place.settings.dask_dashboard_url}
    (ref,) = xcom(streamed, "cut_snapshot")
    page = place.settings.trends_url
    for task, to in (("attach_pool", page), ("cut_snapshot", f"{page}window/{ref['id']}")):
        assert set(xcom(streamed, task, "_link_TrendsLink")) == {to}


def test_a_second_run_starts_and_cuts_nothing_twice(place, streamed, dag_bag):
    """What a retry does too: attach to the node that runs, get the snapshot that is there."""
    again = run(dag_bag, "opinion_stream", QUICK)
    assert again.state == "success"
    (pool,) = xcom(again, "attach_pool")
    assert (pool["nodes"], pool["started"]) == (["yeoron-node-0"], [])
    assert pool["reading"] == {"yeoron-node-0": ["board", "hani"]}
    assert xcom(again, "cut_snapshot") == xcom(streamed, "cut_snapshot")
    assert all(group["snapshot"] for group in xcom(again, "crawl"))
    assert list(place.server.status()["nodes"]).count("yeoron-node-0") == 1
    assert len(place.server.status()["snapshots"]) == 1


def test_a_killed_task_is_retried_and_attaches(place, streamed, dag_bag, monkeypatch):
    """The first try dies right after the pool was attached, as a killed worker does."""
    from embedding_airflow.operators.pool import AttachPool

    tries = []
    whole = AttachPool.work

    def dies_once(self: AttachPool, settings: Any, context: Any) -> Any:
        result = whole(self, settings, context)
        tries.append(result)
        if len(tries) == 1:
            raise KeyboardInterrupt
        return result

    dag = dag_bag.dags["opinion_stream"]
    task = dag.get_task("attach_pool")
    monkeypatch.setattr(task, "retry_delay", timedelta(0))
    monkeypatch.setattr(AttachPool, "work", dies_once)
    dag_run = run(dag_bag, "opinion_stream", QUICK)
    assert dag_run.state == "success"
    assert len(tries) == 2
    assert [state["started"] for state in tries] == [[], []]


def test_a_snapshot_is_evaluated_into_one_mlflow_run(place, streamed, dag_bag):
    from mlflow import MlflowClient

    (ref,) = xcom(streamed, "cut_snapshot")
    first = run(dag_bag, "evaluate_snapshot", {"snapshot_id": "latest"})
    again = run(dag_bag, "evaluate_snapshot", {"snapshot_id": ref["id"]})
    assert (first.state, again.state) == ("success", "success")
    (seen,) = xcom(first, "evaluate")
    assert seen["id"] == ref["id"]
    assert seen["skipped"] >= 1
    assert seen["metrics"]["words"] == ref["words"]
    assert xcom(again, "evaluate")[0]["run_id"] == seen["run_id"]
    client = MlflowClient(tracking_uri=place.settings.tracking_address)
    logged = client.get_run(seen["run_id"])
    assert logged.info.status == "FINISHED"
    model, text = place.settings.model, place.settings.text
    made = {"model": str(model.model), "dim": str(model.dim), "tokenizer": text.tokenizer}
    assert {**made, "compression": "fp16", "topology": "ps"}.items() <= logged.data.params.items()
    assert logged.data.params["nodes"] == str(place.settings.cluster.nodes)
    (link,) = xcom(first, "evaluate", "_link_MlflowLink")
    assert link.endswith(f"/#/experiments/{logged.info.experiment_id}/runs/{seen['run_id']}")
    assert {"id": ref["id"], "run_id": seen["run_id"]} in asset_events("yeoron://evaluations/")


def test_a_trend_report_is_saved(place, streamed, dag_bag):
    from embedding.trends.storage import load

    dag_run = run(dag_bag, "trend_report", {"snapshot_id": "latest"})
    assert dag_run.state == "success"
    (seen,) = xcom(dag_run, "report")
    assert seen["window"] == "2020-02"
    assert seen["notes"] == ["one_snapshot"]
    assert load(place.settings.paths.trends, seen["id"]).snapshot.id == seen["id"]
    assert {"id": seen["id"]} in asset_events("yeoron://trends/")


def test_no_text_and_no_words_of_documents_are_kept_by_airflow(place, streamed, airflow_home):
    """XComs, the database and the logs of the runs hold names, references and counts only."""
    sentence = world.documents(1, 60, datetime(2020, 2, 1, tzinfo=UTC), 28)[7]["text"]
    phrase = sentence.split(". ")[2].encode()
    for path in airflow_home.rglob("*"):
        if path.is_file():
            assert phrase not in world.content(path), path


@pytest.mark.parametrize(
    ("dag", "conf", "task"),
    [
        ("opinion_stream", {"window": "2020-02-30"}, "crawl"),
        ("opinion_stream", {"windows": "2020-02"}, "attach_pool"),
        ("evaluate_snapshot", {"snapshot_id": "no-such"}, "choose_snapshots"),
        ("evaluate_snapshot", {"snapshot": "no-such"}, "choose_snapshots"),
        ("trend_report", {"snapshot_id": "no-such"}, "choose_snapshots"),
    ],
)
def test_bad_input_fails_at_once_without_retries(place, streamed, dag_bag, dag, conf, task):
    dag_run = run(dag_bag, dag, conf)
    assert dag_run.state == "failed"
    assert states(dag_run)[task] == {"failed"}
    failed = [ti for ti in dag_run.get_task_instances() if ti.task_id == task]
    assert all(ti.try_number == 1 for ti in failed)


@pytest.mark.parametrize(("on_timeout", "state"), [("go_on", "success"), ("fail", "failed")])
def test_the_time_limit(place, streamed, dag_bag, on_timeout, state):
    """A window in the far future is not reached: the run goes on or fails, as the form says."""
    conf = {**QUICK, "window": "2099-01", "time_limit_s": 1, "on_timeout": on_timeout}
    dag_run = run(dag_bag, "opinion_stream", conf, mark_success_pattern="cut_snapshot")
    assert dag_run.state == state
    assert states(dag_run)["crawl"] == {state}


def test_settings_are_compared_under_one_parent(place, dag_bag):
    """Two real trainings: a parent run in MLflow and one child for each setting that can work."""
    from mlflow import MlflowClient

    corpus = place.settings.paths.home / "corpus.txt"
    lines = [one["text"] for one in world.documents(5, 600, datetime(2020, 2, 1, tzinfo=UTC), 20)]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    conf = {
        "corpus": str(corpus),
        "policies": ["bsp", "sandblaster"],
        "dims": [8],
        "nodes": 2,
        "tokens": 20_000,
        "epochs": 1,
        "name": "비교",
    }
    dag_run = run(dag_bag, "compare_training", conf)
    assert dag_run.state == "success", states(dag_run)
    (closed,) = xcom(dag_run, "close_comparison")
    assert sorted(closed["trained"]) == sorted(f"sgns-8-{each}" for each in conf["policies"])
    client = MlflowClient(tracking_uri=place.settings.tracking_address)
    assert client.get_run(closed["parent"]).info.status == "FINISHED"
    children = {
        run.data.tags["yeoron.policy"]: run.data
        for run in (client.get_run(one["run_id"]) for one in xcom(dag_run, "train"))
    }
    assert set(children) == set(conf["policies"])
    for name, child in children.items():
        assert child.tags["mlflow.parentRunId"] == closed["parent"]
        assert child.params["policy"] == name
        assert set(child.metrics) >= FIGURES, name
        assert child.metrics["words_per_second"] > 0
        assert child.metrics["bytes_per_token"] > 0
        same = {"compression": "fp16", "topology": "ps", "tokenizer": "whitespace", "nodes": "2"}
        assert child.params["dim"] == "8"
        assert same.items() <= child.params.items()
        assert json.loads(child.params["source_mix"]) == {"corpus": 1.0}
    assert len({child.params["corpus_digest"] for child in children.values()}) == 1
    assert children["sandblaster"].metrics["lbfgs_rounds"] >= 1
    assert children["bsp"].metrics["lbfgs_rounds"] == 0
    assert children["bsp"].metrics["dropped_tokens"] == 0


def test_combinations_that_cannot_work_are_left_out_with_their_reason(place):
    from embedding.kernel.errors import ConfigError
    from embedding_airflow.training import label_of, settings_grid, workable

    params = {
        "policies": ["ssp", "sandblaster"],
        "compressions": ["fp16", "onebit"],
        "topologies": ["ps", "allreduce"],
        "models": ["sgns"],
        "dims": [8],
        "corpus": None,
        "nodes": 2,
        "tokens": 20_000,
        "epochs": 1,
    }
    fit, unfit = workable(place.settings, settings_grid(params))
    assert [label_of(each) for each in fit] == [
        "sgns-8-ssp",
        "sgns-8-ssp-allreduce",
        "sgns-8-ssp-onebit",
        "sgns-8-sandblaster",
    ]
    assert "onebit" in unfit["sgns-8-sandblaster-onebit"]
    assert "allreduce" in unfit["sgns-8-sandblaster-allreduce"]
    alone = {**params, "policies": ["sandblaster"], "compressions": ["onebit"]}
    with pytest.raises(ConfigError, match="sandblaster with compression onebit"):
        workable(place.settings, settings_grid(alone))
    with pytest.raises(ConfigError, match="40 combinations"):
        settings_grid({**params, "dims": list(range(8, 13))})


def test_a_setting_that_fails_fails_the_comparison_and_names_it(place, dag_bag):
    from mlflow import MlflowClient

    missing = str(place.settings.paths.home / "no-such-corpus.txt")
    conf = {"corpus": missing, "policies": ["bsp"], "dims": [8]}
    dag_run = run(dag_bag, "compare_training", conf)
    assert dag_run.state == "failed"
    assert states(dag_run) == {
        "open_comparison": {"success"},
        "train": {"failed"},
        "close_comparison": {"failed"},
    }
    parent = xcom(dag_run, "open_comparison")[0][0]["parent"]
    client = MlflowClient(tracking_uri=place.settings.tracking_address)
    assert client.get_run(parent).info.status == "FAILED"
