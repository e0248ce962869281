"""A collector of OpenLineage hears from a real Airflow what a task read and wrote."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from embedding.kernel.errors import ConfigError
from embedding.settings import TraceConfig
from embedding.snapshots.store import SnapshotStore

ROOT = Path(__file__).parents[2]
RUN = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
dag = DagBag(dag_folder=sys.argv[1]).dags["trend_report"]
dag.deadline = None  # with one, Airflow 3.3 cannot end a run like this
for conf in sys.stdin:
    ran = dag.test(run_conf=json.loads(conf))
    print("RAN", ran.state, flush=True)
"""
pytest.importorskip("openlineage", reason="the extra `lineage`")


class Collector:
    """An address that takes events, and those that it took."""

    def __init__(self) -> None:
        taken: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/api/v1/lineage"
                taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(201)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.taken = taken
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def go_away(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True)
class Reports:
    """An Airflow of its own that runs the DAG `trend_report`, once for each line of its input."""

    process: subprocess.Popen[str]
    log: Path

    def on(self, snapshot: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"snapshot_id": snapshot}) + "\n")
        self.process.stdin.flush()
        ended = next((one for one in self.process.stdout if one.startswith("RAN ")), "")
        assert ended == "RAN success\n", self.log.read_text(errors="replace")[-3000:]


@pytest.fixture
def collector() -> Iterator[Collector]:
    each = Collector()
    yield each
    each.go_away()


@pytest.fixture
def reports(
    airflow_home: Path, installed: Path, collector: Collector, planted: Any, tmp_path: Path
) -> Iterator[Reports]:
    planted.make_store(str(tmp_path / "snapshots"))
    log = tmp_path / "airflow.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-c", RUN, str(ROOT / "dags")],
            env={
                **os.environ,
                **TraceConfig(lineage=collector.address).airflow,
                "PYTHONPATH": os.pathsep.join(
                    map(str, (installed, ROOT, ROOT / "plugins", ROOT / "neighbours"))
                ),
                "YEORON_PATHS__HOME": str(tmp_path),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield Reports(process, log)
        finally:
            # With what Airflow started of its own.
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_report_was_made_of_its_snapshot_and_a_collector_that_is_away_fails_no_task(
    reports: Reports, collector: Collector, tmp_path: Path
) -> None:
    newest = SnapshotStore(str(tmp_path / "snapshots")).list()[-1].id
    reports.on(newest)
    ended = {
        one["job"]["name"]: one
        for one in collector.taken
        if one["eventType"] == "COMPLETE" and one["job"]["namespace"] == "yeoron"
    }
    report = ended["trend_report.report"]
    assert version(report["inputs"]) == {"snapshots": newest}
    assert version(report["outputs"]) == {"trends": newest}
    # Arguments may be secrets, and code is long.
    assert not any("sourceCode" in one["job"]["facets"] for one in collector.taken)

    collector.go_away()
    heard = len(collector.taken)
    shutil.rmtree(tmp_path / "trends")
    reports.on(newest)
    assert any((tmp_path / "trends").iterdir())
    assert len(collector.taken) == heard


def version(datasets: list[dict[str, Any]]) -> dict[str, str]:
    assert {one["namespace"] for one in datasets} == {"yeoron://yeoron"}
    return {one["name"]: one["facets"]["version"]["datasetVersion"] for one in datasets}


def test_where_the_provider_is_missing_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embedding.settings.find_spec", lambda _name: None)
    assert TraceConfig().airflow == {}
    with pytest.raises(ConfigError, match=r"yeoron\[lineage\]"):
        _ = TraceConfig(lineage="http://127.0.0.1:5000").airflow
