"""The DAG that turns alarms into failed tasks, against a server that tells of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import world

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.timeout(600)]
MOMENT = iter(datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=i) for i in range(10_000))
ALARM = {"event": "blocked", "since": "2026-01-01T00:00:00+00:00", "sentence": "it refuses"}


@contextmanager
def telling(status: dict[str, Any]) -> Iterator[int]:
    """A server with this status; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(status).encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.mark.parametrize("alarms", [{}, {"hani": ALARM, "board": {**ALARM, "event": "empty"}}])
def test_each_alarm_is_a_failed_task_and_none_is_a_skipped_one(
    dag_bag: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alarms: dict[str, Any]
) -> None:
    with telling({"alarms": alarms}) as port:
        path = world.write_settings(tmp_path, server={"http_port": port})
        monkeypatch.setenv("YEORON_SETTINGS", str(path))
        dag_run = dag_bag.dags["source_alarms"].test(logical_date=next(MOMENT))
    instances = [ti for ti in dag_run.get_task_instances() if ti.task_id == "alarm"]
    assert sorted(str(ti.state) for ti in instances) == (["failed"] * 2 if alarms else ["skipped"])
    assert dag_run.state == ("failed" if alarms else "success")
    named = sorted(ti.rendered_map_index for ti in instances if ti.rendered_map_index)
    assert named == (["board: empty", "hani: blocked"] if alarms else [])
