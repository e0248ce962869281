"""What `python -m benchmarks chaos` says of figures of runs with and without kills."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.chaos import Setting
from benchmarks.chaosjudging import apart, is_gold, verdict

EXACT = {
    "tokens": 10,
    "tokens_of_the_corpus": 10,
    "words_with_another_count": 0,
    "pushes_applied": 3,
    "pushes_of_the_nodes": 3,
    "pushes_applied_by_each_shard": [3, 3],
    "pushes_lost_by_shards": 0,
    "killed": [],
}


def run(loss: float, **more: Any) -> dict[str, Any]:
    return {**EXACT, "held_out_loss": loss, "similarity/ws": 0.2, **more}


def test_an_interval_holds_the_mean_difference_and_one_pair_has_none():
    told = apart([2.02, 2.03, 2.01], [2.0, 2.0, 2.0])
    assert told["difference"] == pytest.approx(0.02)
    assert told["percent"] == 1.0
    assert told["standard_error"] == pytest.approx(0.01 / 3**0.5, abs=1e-4)
    # Student's 4.303 with 2 degrees of freedom.
    reach = 100 * 4.303 * 0.01 / 3**0.5 / 2
    assert told["interval_percent"] == pytest.approx([1 - reach, 1 + reach], abs=0.01)
    assert told["spread_percent"] == 0.5
    assert apart([2.02], [2.0])["interval_percent"] is None


def test_per_cent_of_a_correlation_below_nothing_keep_their_sign():
    told = apart([-0.1, -0.12], [-0.2, -0.2])
    assert told["percent"] == 45.0
    low, high = told["interval_percent"]
    assert low < 45.0 < high


def test_kills_are_measured_from_the_mean_of_the_runs_without_and_the_noise_apart():
    groups = [
        {"quiet": run(2.0), "killed": run(2.1, killed=[("server", 5)]), "again": run(2.2)},
        {"quiet": run(2.2), "killed": run(2.1, killed=[("server", 5)]), "again": run(2.0)},
    ]
    told = verdict(groups)
    assert told["exact"]
    assert told["kills"] == [1, 1]
    loss = told["held_out_loss"]
    assert (loss["quiet"], loss["difference"], loss["interval_percent"]) == (2.1, 0.0, [0.0, 0.0])
    assert loss["noise"]["difference"] == 0.0
    assert loss["noise"]["spread_percent"] == pytest.approx(100 * 0.2 * 2**0.5 / 2.1, abs=0.01)
    assert told["similarity/ws"]["percent"] == 0.0
    assert "words_with_another_count" not in told


def test_without_a_second_quiet_run_nothing_is_said_of_noise():
    told = verdict([{"quiet": run(2.0), "killed": run(2.1, pushes_applied=4)}])
    assert "noise" not in told["held_out_loss"]
    assert told["held_out_loss"]["percent"] == 5.0
    assert not told["exact"]


def test_each_seed_has_the_runs_that_are_asked_for():
    assert Setting(kills=4).runs == {"quiet": 0, "killed": 4}
    assert Setting(kills=4, calm=2).runs == {"quiet": 0, "killed": 4, "again": 0}


def test_a_gold_set_is_judged_whole():
    told = ["similarity/ws", "analogy/qw", "analogy/qw/gram1", "coverage/qw", "words"]
    assert [name for name in told if is_gold(name)] == ["similarity/ws", "analogy/qw"]
