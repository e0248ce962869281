"""The bench of what a row costs runs, and tells the fixed part from that of a row."""

import pytest

from benchmarks import shards


def test_small_shards_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "WARM_TICKS", 3)
    monkeypatch.setattr(shards, "TICKS", 3)
    monkeypatch.setattr(shards, "FIRST", (1, 5_000))
    report = shards.bench_shards((1,), (5_000, 20_000), 8, 1, results=tmp_path)
    smaller, larger = report["sizes"]
    assert smaller["fixed_mb"] > 50
    assert smaller["bytes_more"] is None
    grown = [size["bytes"] * (size["rows"] - shards.BATCH) for size in (smaller, larger)]
    assert larger["bytes_more"] == pytest.approx((grown[1] - grown[0]) / 15_000)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".md"}
