"""A collector of OpenLineage hears from a real Airflow what a task read and wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from embedding.bench.results import free_port
from embedding.kernel.errors import ConfigError
from embedding.settings import TraceConfig
from embedding.snapshots.store import SnapshotStore

ROOT = Path(__file__).parents[2]
RUN = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
dag = DagBag(dag_folder=sys.argv[1]).dags["trend_report"]
dag.deadline = None  # with one, Airflow 3.3 cannot end a run like this
ran = dag.test(run_conf=json.loads(sys.argv[2]))
sys.exit(ran.state != "success")
"""
pytest.importorskip("openlineage", reason="the extra `lineage`")


@pytest.fixture
def collector() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and the events that it took."""
    taken: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/api/v1/lineage"
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", taken
        server.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_report_was_made_of_its_snapshot(
    airflow_home: Path, installed: Path, collector: Any, planted: Any, tmp_path: Path
) -> None:
    address, taken = collector
    planted.make_store(str(tmp_path / "snapshots"))
    newest = SnapshotStore(str(tmp_path / "snapshots")).list()[-1].id
    report_on(newest, address, installed, tmp_path)
    ended = {
        one["job"]["name"]: one
        for one in taken
        if one["eventType"] == "COMPLETE" and one["job"]["namespace"] == "yeoron"
    }
    report = ended["trend_report.report"]
    assert version(report["inputs"]) == {"snapshots": newest}
    assert version(report["outputs"]) == {"trends": newest}
    # Arguments may be secrets, and code is long.
    assert not any("sourceCode" in one["job"]["facets"] for one in taken)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_collector_that_is_away_fails_no_task(
    airflow_home: Path, installed: Path, planted: Any, tmp_path: Path
) -> None:
    planted.make_store(str(tmp_path / "snapshots"))
    newest = SnapshotStore(str(tmp_path / "snapshots")).list()[-1].id
    report_on(newest, f"http://127.0.0.1:{free_port()}", installed, tmp_path)
    assert any((tmp_path / "trends").iterdir())


def report_on(snapshot: str, collector: str, installed: Path, home: Path) -> None:
    """Run the DAG `trend_report` in an Airflow of its own."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(ROOT / "dags"), json.dumps({"snapshot_id": snapshot})],
        env={
            **os.environ,
            **TraceConfig(lineage=collector).airflow,
            "PYTHONPATH": os.pathsep.join(map(str, (installed, ROOT, ROOT / "plugins"))),
            "YEORON_PATHS__HOME": str(home),
        },
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def version(datasets: list[dict[str, Any]]) -> dict[str, str]:
    assert {one["namespace"] for one in datasets} == {"yeoron://yeoron"}
    return {one["name"]: one["facets"]["version"]["datasetVersion"] for one in datasets}


def test_where_the_provider_is_missing_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embedding.settings.find_spec", lambda _name: None)
    assert TraceConfig().airflow == {}
    with pytest.raises(ConfigError, match=r"yeoron\[lineage\]"):
        _ = TraceConfig(lineage="http://127.0.0.1:5000").airflow
