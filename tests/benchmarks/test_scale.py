"""The simulation of scale and the judging of a soak, on a small load."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale, scaleparts, soak
from benchmarks.scaleparts import Load, Station

SMALL = Load(nodes=20, sources=100, documents_a_day=1e6, decisions=200)


@pytest.mark.parametrize("part", sorted(scale.PARTS))
def test_each_part_makes_its_decisions(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaleparts, "_TURN_S", 3.0)
    found = scale.PARTS[part](SMALL)
    row = found.row()
    assert row["decisions_per_s"] > 0
    assert row["p99_s"] <= row["max_s"]
    if part.startswith("lease"):
        assert 20 < found.notes["takeover_s"] < 60, "after the dead nodes' leases ran out"
    if part == "windows":
        assert 0 <= found.notes["cut_after_last_source_s"] < 2
    if part == "frontier":
        assert found.notes["documents"] > 0


def test_a_result_has_a_row_a_part(tmp_path: Path) -> None:
    report = scale.bench_scale(SMALL, ("windows", "clocks-ssp"), results=tmp_path)
    assert [row["part"] for row in report["parts"]] == ["windows", "clocks (ssp)"]
    assert list(tmp_path.glob("scale-*.md"))


def test_decisions_queue_in_simulated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 2.0, 2.0, 4.0, 4.0, 5.0])
    monkeypatch.setattr(scaleparts.time, "thread_time", lambda: next(ticks))
    station = Station("one", demand=1.0)
    for at in (0.0, 1.0, 100.0):
        station.decide(at, lambda: None)
    assert station.waits == [2.0, 3.0, 1.0]
    assert station.row()["use"] == pytest.approx(5 / 3, abs=1e-3)


def test_a_slope_is_of_what_came_after_the_first_quarter() -> None:
    samples = [
        {
            "at_s": 36.0 * at,
            "mb": 1000.0 if at < 25 else 100.0 + at / 10,
            "descriptors": 50,
            "files": 10,
            "files_mb": 1.0,
            "roles": {"server": {"mb": 40.0}},
        }
        for at in range(100)
    ]
    found = {one["figure"]: one for one in soak.slopes(samples)}
    assert found["mb"]["an_hour"] == pytest.approx(10.0)
    assert found["descriptors"]["percent_an_hour"] == 0
    assert found["mb of server"]["mean"] == 40.0
