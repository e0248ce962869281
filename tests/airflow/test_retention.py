"""The DAG that removes what is too old, over a home that has some of it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import world

from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.timeout(600)]


def test_a_run_by_schedule_removes_what_is_too_old(
    dag_bag: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.write_settings(tmp_path, retention={"evidence_days": 30})
    monkeypatch.setenv("YEORON_SETTINGS", str(path))
    from embedding.settings import load_settings

    paths = load_settings().paths
    now = datetime.now(UTC).timestamp()
    ages = {"https://a.example/old": 31, "https://a.example/new": 29}
    rows = [
        {
            "word": "말",
            "source": "a",
            "day": int(now // 86_400) - days,
            "hash": days,
            "url": url,
            "published": now - days * 86_400,
        }
        for url, days in ages.items()
    ]
    store = EvidenceStore(paths.evidence)
    store.add(pa.Table.from_pylist(rows, schema=EVIDENCE_SCHEMA), "n0")
    paths.logs.mkdir(parents=True)
    old, new = paths.logs / "old.log", paths.logs / "new.log"
    for file, days in ((old, 91), (new, 89)):
        file.touch()
        os.utime(file, (now - days * 86_400,) * 2)

    dag = dag_bag.dags["retention"]
    assert dag.timetable.can_be_scheduled
    assert not dag.is_paused_upon_creation
    run = dag.test(logical_date=datetime(2025, 6, 1, tzinfo=UTC))
    assert run.state == "success"
    start, end = datetime.now(UTC) - timedelta(days=60), datetime.now(UTC)
    assert [one.url for one in store.find("말", start, end)] == ["https://a.example/new"]
    assert [path.name for path in paths.logs.iterdir()] == ["new.log"]
    (task,) = run.get_task_instances()
    said = task.xcom_pull(task_ids="retain", key="return_value")
    assert "Evidence, addresses of documents: 1 were removed." in said
