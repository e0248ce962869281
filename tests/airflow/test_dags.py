"""Integrity and structure of the DAGs, and what parsing them may cost."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DAGS = {
    "opinion_stream": {"attach_pool", "source_groups", "crawl", "cut_snapshot"},
    "opinion_daily": {"start_window"},
    "evaluate_snapshot": {"choose_snapshots", "evaluate"},
    "trend_report": {"choose_snapshots", "report", "notify"},
    "compare_training": {"open_comparison", "train", "close_comparison"},
    "source_alarms": {"look", "alarm"},
    "retention": {"retain"},
    "rollback": {"roll_back"},
    "discover_sources": {"discover", "approve", "add_sources"},
}
HEAVY = {
    *("torch", "dask", "distributed", "mlflow", "pyarrow", "pandas", "numpy", "numba", "scipy"),
    *("playwright", "kiwipiepy", "trafilatura", "matplotlib", "duckdb", "sqlite_vec"),
}
PROBE = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
from sqlalchemy import event
from sqlalchemy.engine import Engine
queries = []
event.listen(Engine, "before_cursor_execute", lambda *a: queries.append(a[2]))
import socket
connections = []
connect = socket.socket.connect
def note(self, address):
    connections.append(str(address))
    return connect(self, address)
socket.socket.connect = note
bag = DagBag(dag_folder=sys.argv[1])
print(json.dumps({
    "errors": {k: str(v) for k, v in bag.import_errors.items()}, "dags": sorted(bag.dags),
    "modules": sorted({m.partition(".")[0] for m in sys.modules}),
    "embedding": sorted(m for m in sys.modules if m.startswith("embedding.")),
    "queries": queries, "connections": connections,
}))
"""


@pytest.fixture(scope="module")
def parsed(airflow_home: Path) -> dict[str, list[str]]:
    """What parsing every DAG in a fresh process imports, asks and connects to."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(ROOT / "dags")],
        check=True,
        timeout=150,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_no_import_errors_and_every_dag_is_there(parsed):
    assert parsed["errors"] == {}
    assert parsed["dags"] == sorted(DAGS)


def test_parsing_imports_nothing_heavy(parsed):
    assert not HEAVY & set(parsed["modules"])


def test_parsing_imports_no_room(parsed):
    """Only the kernel, and the names that registries know: rooms are read when a task runs."""
    names = ("exchange.compression", "exchange.topologies", "models", "server.policies")
    light = {f"embedding.{name}{end}" for name in names for end in ("", ".traits")}
    light |= {
        "embedding.exchange",
        "embedding.server",
        "embedding.kernel",
    }
    assert set(parsed["embedding"]) <= light | {
        "embedding.kernel.errors",
        "embedding.kernel.config",
        "embedding.kernel.zones",
        "embedding.kernel.registry",
    }


def test_parsing_asks_no_database_and_connects_nowhere(parsed):
    assert parsed["queries"] == []
    assert parsed["connections"] == []


@pytest.mark.parametrize("name", sorted(DAGS))
def test_a_dag_file_is_short(name):
    assert len((ROOT / "dags" / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.parametrize("name", sorted(DAGS))
def test_a_dag_says_what_it_is(dag_bag, name):
    dag = dag_bag.dags[name]
    assert dag.description
    assert dag.doc_md.startswith(f"# {name}")
    assert "yeoron" in dag.tags
    assert {task.owner for task in dag.tasks} == {"yeoron"}
    assert all(task.retries >= 1 and task.retry_delay.total_seconds() > 0 for task in dag.tasks)
    assert dag.max_active_runs == 1
    assert dag.catchup is False


@pytest.mark.parametrize("name", sorted(DAGS))
def test_every_param_has_type_and_description(dag_bag, name):
    params = deepcopy(dag_bag.dags[name].params)
    for key in params:
        param = params.get_param(key)
        assert param.description, key
        assert param.schema["type"], key
        assert param.schema["title"], key
    if name == "rollback":
        params.update({"reason": "a test"})
    params.validate()


@pytest.mark.parametrize(("name", "tasks"), DAGS.items())
def test_structure(dag_bag, name, tasks):
    assert set(dag_bag.dags[name].task_ids) == tasks


def test_order_of_the_stream(dag_bag):
    dag = dag_bag.dags["opinion_stream"]
    assert dag.get_task("crawl").upstream_task_ids == {"attach_pool", "source_groups"}
    assert dag.get_task("cut_snapshot").upstream_task_ids == {"crawl"}
    assert dag.get_task("crawl").is_mapped
    assert [asset.uri for asset in dag.get_task("cut_snapshot").outlets] == ["yeoron://snapshots/"]


def test_assets_start_evaluation_and_trends(dag_bag):
    for name in ("evaluate_snapshot", "trend_report"):
        condition = dag_bag.dags[name].timetable.asset_condition
        assert [asset.uri for asset in condition.objects] == ["yeoron://snapshots/"]


def test_revisions_that_the_server_made_are_reported_within_the_hour(dag_bag):
    """They bring no event: a month might pass before the next window's."""
    assert dag_bag.dags["trend_report"].timetable.timetable.expression == "0 * * * *"


@pytest.mark.parametrize(
    ("dag", "task", "asset"),
    [
        ("opinion_stream", "cut_snapshot", "yeoron://snapshots/"),
        ("evaluate_snapshot", "evaluate", "yeoron://evaluations/"),
        ("trend_report", "report", "yeoron://trends/"),
    ],
)
def test_assets_are_outlets_after_serialisation_too(dag_bag, dag, task, asset):
    """A mapped task's outlets count only when its `partial` names them."""
    from airflow.serialization.serialized_objects import DagSerialization

    stored = DagSerialization.serialize_dag(dag_bag.dags[dag])
    (found,) = [one for one in stored["tasks"] if one["__var"]["task_id"] == task]
    fields = {**found["__var"], **found["__var"].get("partial_kwargs", {})}
    assert asset.rstrip("/") in json.dumps(fields["outlets"])


def test_assets_have_a_lineage(dag_bag):
    """From the sources to the notice: what each task reads, and what it writes."""
    found = {
        (dag, task): ([a.name for a in one.inlets or ()], [a.name for a in one.outlets or ()])
        for dag, task in (
            ("discover_sources", "add_sources"),
            ("opinion_stream", "cut_snapshot"),
            ("evaluate_snapshot", "evaluate"),
            ("trend_report", "report"),
            ("trend_report", "notify"),
        )
        for one in [dag_bag.dags[dag].get_task(task)]
    }
    assert found == {
        ("discover_sources", "add_sources"): ([], ["sources"]),
        ("opinion_stream", "cut_snapshot"): (["sources"], ["snapshots"]),
        ("evaluate_snapshot", "evaluate"): (["snapshots"], ["evaluations"]),
        ("trend_report", "report"): (["snapshots"], ["trends"]),
        ("trend_report", "notify"): (["trends"], []),
    }


def test_a_rollback_needs_a_reason(dag_bag):
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError, match="reason"):
        dag_bag.dags["rollback"].params.validate()


def test_nobody_else_starts_by_itself(dag_bag):
    for name in ("opinion_daily", "source_alarms"):
        assert dag_bag.dags[name].is_paused_upon_creation
    for name in ("opinion_stream", "compare_training"):
        assert not dag_bag.dags[name].timetable.can_be_scheduled


@pytest.mark.parametrize(
    ("zone", "midnight", "ended"),
    [
        ("Asia/Seoul", "2020-03-01T15:00:00+00:00", "2020-03-01"),
        ("America/New_York", "2020-03-09T04:00:00+00:00", "2020-03-08"),
        ("UTC", "2020-03-02T00:00:00+00:00", "2020-03-01"),
    ],
)
def test_a_day_is_over_at_midnight_of_the_servers_time_zone(monkeypatch, zone, midnight, ended):
    import pendulum
    from airflow.sdk.execution_time import macros

    monkeypatch.setenv("YEORON_SERVER__TIMEZONE", zone)
    path = ROOT / "dags" / "opinion_daily.py"
    dag = runpy.run_path(str(path))["dag"]
    assert str(dag.timetable.timezone) == zone
    name = dag.get_template_env().from_string(dag.get_task("start_window").trigger_run_id)
    at = pendulum.parse(midnight)
    assert name.render(logical_date=at, dag=dag, macros=macros) == f"daily__{ended}"


@pytest.mark.parametrize(
    ("dag", "task", "links"),
    [
        ("opinion_stream", "attach_pool", {"Dask dashboard", "Trends page"}),
        ("opinion_stream", "crawl", {"Dask dashboard", "Trends page"}),
        ("evaluate_snapshot", "evaluate", {"MLflow run", "Dask dashboard", "Trends page"}),
        ("compare_training", "train", {"MLflow run", "Dask dashboard"}),
    ],
)
def test_links_survive_serialisation(dag_bag, dag, task, links):
    from airflow.serialization.serialized_objects import DagSerialization

    stored = DagSerialization.serialize_dag(dag_bag.dags[dag])
    read = DagSerialization.deserialize_dag(json.loads(json.dumps(stored)))
    assert links <= set(read.get_task(task).extra_links)


def test_the_choices_are_what_the_rooms_know():
    from embedding.exchange.compression.traits import COMPRESSIONS
    from embedding.kernel.records import WindowUnit
    from embedding.models.traits import MODELS
    from embedding.server.policies.traits import POLICIES
    from embedding_airflow.params import WINDOW_UNITS, training_params

    params = training_params()
    for name, known in (("policies", POLICIES), ("models", MODELS), ("compressions", COMPRESSIONS)):
        assert params[name].schema["items"]["enum"] == list(known)
    assert set(WINDOW_UNITS) == {"auto", *(unit.value for unit in WindowUnit)}


@pytest.mark.parametrize(
    ("dag", "conf"),
    [
        ("opinion_stream", {"window": "2020-13"}),
        ("opinion_stream", {"window": "어제"}),
        ("opinion_stream", {"unit": "decade"}),
        ("opinion_stream", {"on_timeout": "shrug"}),
        ("opinion_stream", {"time_limit_s": 0}),
        ("evaluate_snapshot", {"snapshot_id": ""}),
        ("rollback", {"reason": ""}),
        ("compare_training", {"policies": ["gossip"]}),
        ("compare_training", {"policies": []}),
        ("compare_training", {"dims": [0]}),
        ("compare_training", {"tokens": "many"}),
    ],
)
def test_wrong_params_are_refused(dag_bag, dag, conf):
    from airflow.sdk.exceptions import ParamValidationError

    params = dag_bag.dags[dag].params
    with pytest.raises(ParamValidationError, match=next(iter(conf))):
        params.update(conf)
