"""The whole platform on PostgreSQL, and its server lost under it.

tests/platform/test_moving.py has the way there from SQLite.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy.engine import make_url

from embedding.cluster import attach_pool, stop_pool
from embedding.evaluation.runs import connect
from embedding.platform.operate import bring_down
from embedding.platform.processes import marked
from embedding.settings import Settings, load_settings, platform_login
from embedding.worker.process.forking import forked
from pgserver import KEYED, PostgresServer, running_postgres
from waiting import until
from yeoron_demo.airflow_api import AirflowApi
from yeoron_lab.ports import lasting_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
SECRET = "DATABASES-PASSWORD"
TASKS = 6
DAG = f"""
import os, time
from airflow.sdk import dag, task

@dag(schedule=None, catchup=False)
def meeting():
    @task(retries=3, retry_delay=1)
    def meet(at):
        folder = os.environ["YEORON_TEST_FOLDER"]
        open(f"{{folder}}/task-{{at}}", "w").close()
        deadline = time.monotonic() + 300
        while not os.path.exists(f"{{folder}}/over") and time.monotonic() < deadline:
            time.sleep(0.2)
        return at
    meet.expand(at=list(range({TASKS})))

meeting()
"""


@dataclass(frozen=True)
class Place:
    """A platform that runs, and its database server."""

    settings: Settings
    file: Path
    folder: Path
    postgres: PostgresServer


def yeoron(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    given = {k: v for k, v in os.environ.items() if not k.startswith(("YEORON_", "AIRFLOW"))}
    bundle = {
        "name": "tests",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(file.parent / "dags")},
    }
    given["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"] = json.dumps([bundle])
    given["PYTHONDONTWRITEBYTECODE"] = "1"
    given["TEST_FOLDER"] = str(file.parent)
    command = [sys.executable, "-m", "embedding.cli", "--settings", str(file), *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=given, timeout=600, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("platform")
    (folder / "dags").mkdir()
    (folder / "dags" / "meeting.py").write_text(
        DAG.replace("YEORON_TEST_FOLDER", "TEST_FOLDER"), encoding="utf-8"
    )
    (folder / "sources.toml").write_text(
        '[[source]]\nname = "board"\nkind = "feed"\nurl = "http://127.0.0.1:9/feed.xml"\n'
        '[[source]]\nname = "other"\nkind = "feed"\nurl = "http://127.0.0.1:9/other.xml"\n',
        encoding="utf-8",
    )
    ports = {name: lasting_port() for name in ("airflow", "mlflow", "dask", "dask_dashboard")}
    text = (
        f'[paths]\nhome = "{folder / "home"}"\nsources = "{folder / "sources.toml"}"\n'
        f"[cluster]\nnodes = 2\n"
        f"[server]\nport = {lasting_port()}\nhttp_port = {lasting_port()}\n"
        "[ports]\n" + "".join(f"{name} = {port}\n" for name, port in ports.items())
    )
    with running_postgres() as postgres:
        postgres.run(f"CREATE ROLE {KEYED} LOGIN PASSWORD '{SECRET}'")
        name = make_url(postgres.new_database(f"OWNER {KEYED}")).database
        (folder / "pass").write_text(f"*:*:*:{KEYED}:{SECRET}\n", encoding="utf-8")
        (folder / "pass").chmod(0o600)
        file = folder / "yeoron.toml"
        file.write_text(
            f'{text}[database]\nurl = "{postgres.address(name, KEYED)}"\n'
            f'passfile = "{folder / "pass"}"\nairflow_tasks = {TASKS}\n',
            encoding="utf-8",
        )
        chosen = load_settings(file)
        try:
            started = yeoron(file, "up")
            assert started.returncode == 0, started.stderr
            yield Place(chosen, file, folder, postgres)
        finally:
            bring_down(chosen)


def test_everything_is_on_postgres(place: Place) -> None:
    assert not list(place.settings.paths.home.rglob("*.db"))
    shown = yeoron(place.file, "database", "check", "--json")
    assert set(json.loads(shown.stdout)) == {"airflow", "mlflow", "frontier"}
    assert shown.stdout.count("postgresql") == 3


def test_a_lost_database_ends_nothing(place: Place) -> None:
    """More tasks at once than SQLite allows, two nodes, and a server that is killed under them."""
    attach_pool(place.settings)
    until(lambda: len(nodes(place)) == 2, "the nodes did not greet the server", 300)
    with airflow(place) as api:
        api.wait_for_dags(["meeting"])
        api.trigger("meeting", "r", {})
        until(lambda: len(list(place.folder.glob("task-*"))) == TASKS, "they do not meet", 300)
        working = node_processes(place)
        assert len(working) >= 4
        place.postgres.stop(signal.SIGQUIT)
        until(lambda: all(away(one) > 5 for one in nodes(place).values()), "nodes do not notice")
        place.postgres.start()
        (place.folder / "over").touch()
        until(lambda: state(api) == "success", lambda: state(api), 300)
    until(lambda: not any(map(away, nodes(place).values())), "nodes do not go on")
    assert node_processes(place) == working
    client = connect(place.settings.tracking_address)
    client.log_metric(client.create_run("0").info.run_id, "loss", 0.5)
    assert stop_pool(place.settings) == ["yeoron-node-0", "yeoron-node-1"]


def test_no_process_and_no_log_tells_the_password(place: Place) -> None:
    for process in marked(place.settings.paths.home):
        with contextlib.suppress(psutil.NoSuchProcess):
            assert SECRET not in " ".join(process.cmdline())
            assert SECRET not in json.dumps(process.environ())
    held = [path for path in place.settings.paths.home.rglob("*") if path.is_file()]
    assert [path.name for path in held if SECRET.encode() in path.read_bytes()] == []


@contextlib.contextmanager
def airflow(place: Place) -> Iterator[AirflowApi]:
    user, password = platform_login(place.settings.paths.airflow)
    api = AirflowApi(place.settings.airflow_url, user, password)
    try:
        yield api
    finally:
        api.close()


def state(api: AirflowApi) -> str:
    time.sleep(0.5)
    try:
        return str(api.runs("meeting")[0]["state"])
    except Exception as error:  # noqa: BLE001 - it has just lost its database
        return repr(error)


def nodes(place: Place) -> dict[str, Any]:
    answer = httpx.get(place.settings.server_status_url, timeout=60, trust_env=False)
    found: dict[str, Any] = answer.json()["nodes"]
    return found


def node_processes(place: Place) -> set[int]:
    """Crawler and gradient process of each node."""
    return {one.pid for one in marked(place.settings.paths.home) if forked(one)}


def away(node: dict[str, Any]) -> float:
    return float((node.get("report") or {}).get("frontier_away_s", 0.0))
