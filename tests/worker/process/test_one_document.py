"""A month with one document, from server and node to the report and the page."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import Depends
from fastapi.testclient import TestClient
from killing import chaos

from embedding.kernel.records import Window, WindowUnit
from embedding.snapshots.store import SnapshotStore
from embedding.trends.report import build_report
from embedding.web.app import create_app
from embedding.web.config import WebConfig
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LINES = {1: 300, 2: 1, 3: 300}


def test_it_is_published_whole_and_reported_with_the_reason(tmp_path: Path) -> None:
    dice, path = random.Random(3), tmp_path / "c.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for month, lines in LINES.items():
            for at in range(lines):
                topic = dice.randrange(5)
                text = " ".join(f"낱말{topic}{dice.randrange(9)}" for _ in range(8))
                line = {"date": f"2020-{month:02d}-{1 + at % 27:02d}", "text": text}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    settings = {"cut": "watermark", "in_step": True, "window": WindowUnit.MONTH, "min_count": 1}
    store, ids = SnapshotStore(str(tmp_path / "store")), {}
    with chaos(tmp_path, "ssp", **settings) as (found, pool):
        found.expect(1)
        found.learn(pool, path, 1, window=WindowUnit.MONTH)
        found.ended()
        for month, lines in LINES.items():
            start = datetime(2020, month, 1, tzinfo=UTC)
            ids[month] = found.client.cut(Window.holding(start, WindowUnit.MONTH)).id
            snapshot = store.open(ids[month])
            assert snapshot.manifest.documents == {"corpus": lines}
            assert snapshot.manifest.missing == ()
            assert snapshot.manifest.judgeable
            # Words of a window are read by what was counted before it, too.
            assert snapshot.usage is not None
    reports = {month: build_report(store, ids[month]) for month in (2, 3)}
    assert "few_documents" in [note.code for note in reports[2].notes]
    for report in reports.values():
        assert not [row for row in report.moved if row.significant]
    config = WebConfig(
        snapshots=store.uri,
        reports=tmp_path / "trends",
        evidence=tmp_path / "evidence",
        token_file=tmp_path / "token",
    )
    page = TestClient(create_app(config, dependencies=[Depends(lambda: None)]))
    for month in LINES:
        # On a busy machine it answers 202 while it makes the report.
        until(lambda at=f"/window/{ids[month]}": page.get(at).status_code != 202)
        assert page.get(f"/window/{ids[month]}").status_code == 200
    assert page.get("/word/낱말11", params={"id": ids[2]}).status_code == 200
