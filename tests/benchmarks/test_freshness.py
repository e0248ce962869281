"""The scheduler against known rates, in one small simulated case of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import freshness

SETTING = freshness.Setting(sources=40, seeds=2, horizon=60.0, budgets=(1.0,))


@pytest.mark.parametrize("case", ["lognormal", "weights", "signals, noise"])
def test_the_learnt_schedule_comes_near_the_oracle(case: str) -> None:
    runs = [freshness._run(case, 1.0, SETTING, seed) for seed in range(2)]
    assert sum(run["of_oracle"] for run in runs) / 2 > 0.93
    assert all(run["budget_used"] <= 1.02 for run in runs)


def test_signals_that_tell_the_truth_beat_an_oracle_without_them() -> None:
    run = freshness._run("signals, good", 1.0, SETTING, 0)
    assert run["of_oracle"] > 1.02


def test_a_result_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "CASES", ("alike",))
    setting = freshness.Setting(sources=10, seeds=2, horizon=10.0, budgets=(1.0,))
    freshness.bench_freshness(setting, results=tmp_path)
    (file,) = tmp_path.glob("freshness-*.json")
    (row,) = json.loads(file.read_text())["rows"]
    assert row["case"] == "alike"
    assert 0 < row["learnt"][0] <= 1
