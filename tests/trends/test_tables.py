"""Reports as tables: `yeoron trends report`, and the documented query over them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from embedding.cli import app
from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.trends.rows import Bias

DOCS = Path(__file__).parents[2] / "docs" / "concepts" / "changes.md"


def documented() -> str:
    found = re.search(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    assert found is not None
    return found[1]


def test_the_documented_query_reads_the_tables_of_all_windows(store, tmp_path: Path) -> None:
    out = tmp_path / "trends"
    call = ["trends", "report", "--all", "--snapshots", store.uri, "--out", str(out), "--json"]
    said = CliRunner().invoke(app, call)
    assert said.exit_code == 0, said.output
    refs = store.list()
    assert storage.saved(out) == sorted(ref.id for ref in refs)
    rows = duckdb.sql(documented().replace("var/trends", str(out))).fetchall()
    moved = [row for row in build_report(store).moved if row.significant]
    assert [row[:2] for row in rows] == [("2020-02", w.word) for w in moved for _ in w.sources]
    assert {row[4] for row in rows} == {"뉴스", "게시판", "댓글"}
    assert sum(row[5] for row in rows) == sum(row.documents for row in moved)


def test_sources_are_a_table_with_their_losses(store, tmp_path: Path) -> None:
    report = build_report(store)
    losses = {"뉴스": 2.0, "게시판": 2.5}
    storage.save(replace(report, bias=Bias("게시판", 0.3, 2.2, losses)), tmp_path)
    query = f"SELECT source, documents, loss, excess FROM '{tmp_path}/*/sources.parquet' ORDER BY 1"
    found = {row[0]: row[1:] for row in duckdb.sql(query).fetchall()}
    assert found["게시판"] == (2000, 2.5, pytest.approx(0.3))
    assert found["댓글"] == (1500, None, None)
