"""A run that is not done in time: what is told of it, and by a real scheduler and triggerer."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from embedding_airflow.environment import airflow_environment, airflow_services
from waiting import until

ROOT = Path(__file__).parents[2]
WITH_DEADLINE = {"opinion_stream", "evaluate_snapshot", "trend_report", "retention", "rollback"}
DAG_FILE = """
from datetime import timedelta
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param
from embedding_airflow.deadlines import done_within

with DAG(
    "slow",
    schedule=None,
    params={"window": Param(None, type=["null", "string"])},
    deadline=done_within(timedelta(seconds=1)),
    tags=["yeoron"],
):
    # No task gets a place in a pool that is not there, so the run goes on for ever.
    EmptyOperator(task_id="hang", pool="no such pool")
"""

# Both commands of one process: importing Airflow takes longer than they do.
TRIGGER = """
from airflow.cli.cli_parser import get_parser
for line in (
    ["dags", "reserialize"],
    ["dags", "trigger", "slow", "--conf", '{"window": "2020-02"}'],
):
    chosen = get_parser().parse_args(line)
    chosen.func(chosen)
"""


@contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address that takes notices, and what it was sent."""
    taken: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", taken
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    """A command with all its processes, for as long as the block."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, env=environment, stdout=file, stderr=file, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def late():
    """Airflow's context of a late run."""
    return {
        "dag_run": {
            "dag_id": "opinion_stream",
            "dag_run_id": "manual__2020-03-01T00:00:00+00:00",
            "note": "Window 2020-02",
            "state": "running",
            "queued_at": "2020-03-01T00:00:07.5Z",
        },
        "deadline": {"id": "…", "deadline_time": datetime(2020, 3, 2, 6, tzinfo=UTC)},
    }


def test_what_is_told_of_a_late_run(late):
    from embedding_airflow.deadlines import late_notice
    from embedding_airflow.notices.delivery import as_text

    notice = late_notice(late, "http://127.0.0.1:8080")
    assert notice.subject == "opinion_stream: a run is late"
    run = "manual__2020-03-01T00%3A00%3A00%2B00%3A00"
    assert notice.address == f"http://127.0.0.1:8080/dags/opinion_stream/runs/{run}"
    late = "asked for at 2020-03-01 00:00, to be done by 2020-03-02 06:00 UTC; it is running"
    lines = ["Late", f"- Window 2020-02: {late}", f"  {notice.address}", "", notice.address]
    assert as_text(notice).splitlines() == lines


def test_without_a_channel_it_is_logged(late, tmp_path, monkeypatch, caplog):
    import asyncio

    from embedding_airflow.deadlines import tell_late

    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path))
    assert "notify.* names none" in asyncio.run(tell_late(late))
    assert "opinion_stream: a run is late" in caplog.text


def test_which_dags_have_a_deadline(airflow_home):
    from airflow.dag_processing.dagbag import DagBag

    dag_bag = DagBag(dag_folder=str(ROOT / "dags"))
    found = {
        name: [alert.interval for alert in _alerts(dag.deadline)]
        for name, dag in dag_bag.dags.items()
    }
    assert {name for name, intervals in found.items() if intervals} == WITH_DEADLINE
    # Groups are waited for as long as the form says.
    limit = dag_bag.dags["opinion_stream"].params["time_limit_s"]
    assert found["opinion_stream"][0] > timedelta(seconds=limit)


def _alerts(deadline: Any) -> list[Any]:
    return deadline if isinstance(deadline, list) else [deadline] if deadline else []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_airflow_tells_of_a_late_run_and_names_its_window(airflow_database, tmp_path):
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "slow.py").write_text(DAG_FILE, encoding="utf-8")
    home = tmp_path / "airflow"
    with webhook() as (address, taken), ExitStack() as stack:
        environment = {
            **os.environ,
            **airflow_environment(home, port=18999, dags=dags, plugins=ROOT / "plugins"),
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "plugins", ROOT / "neighbours"))),
            "YEORON_PATHS__HOME": str(tmp_path / "var"),
            "YEORON_NOTIFY__WEBHOOK": address,
        }
        services = airflow_services(environment)

        copyfile(airflow_database, home / "airflow.db")
        subprocess.run(
            [sys.executable, "-c", TRIGGER],
            env=environment,
            check=True,
            capture_output=True,
            timeout=200,
        )
        logs = {name: tmp_path / f"{name}.log" for name in ("scheduler", "triggerer")}
        for name, log in logs.items():
            stack.enter_context(running(services[name], environment, log))

        def how() -> str:
            return "\n".join(log.read_text(errors="replace")[-3_000:] for log in logs.values())

        until(lambda: taken, how, seconds=300)
        (notice,) = taken
        assert "slow: a run is late" in notice["text"]
        assert "|Window 2020-02>" in notice["text"]
        until(lambda: _callback(home) == "success", how)


def _callback(home: Path) -> str:
    """State of the one callback."""
    with sqlite3.connect(home / "airflow.db", timeout=30) as database:
        (row,) = database.execute("select state from callback").fetchall()
    return str(row[0])
