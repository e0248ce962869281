"""The benchmark of the policies, on a corpus of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.hogwild import bench_hogwild
from benchmarks.policies import ONE, Cluster, bench_policies, main
from benchmarks.simulated import SIMULATED, bench_simulated
from benchmarks.unlike import speeds
from embedding.kernel.errors import ConfigError
from embedding.models.config import ModelConfig

MODEL = ModelConfig(dim=8, sample=0.0, learning_rate=0.05)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """24,000 words of two topics that never meet."""
    random = np.random.default_rng(0)
    path = tmp_path / "corpus.txt"
    with path.open("w") as out:
        for at in range(1_200):
            out.write(" ".join(f"w{(at % 2) * 50 + x}" for x in random.integers(0, 50, 20)) + "\n")
    return path


def test_it_writes_what_it_measured(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = bench_policies(
        corpus,
        Cluster(nodes=3, block=500, block_s=0.01),
        variants=("bsp", "backup"),
        words=20_000,
        model=MODEL,
        held_out=2_000,
        results=tmp_path,
    )
    (path,) = tmp_path.glob("policies-*-slow.json")
    assert json.loads(path.read_text()) == report
    assert {"when", "hardware", "versions", "config", "corpus"} <= set(report)
    runs, summary = report["runs"], report["summary"]
    assert set(runs) == set(summary) == {ONE, "bsp", "backup"}
    # What backup drops is made up for, so that as many tokens reach the tables.
    for run in runs.values():
        applied = run["tokens"] - run["dropped_tokens"]
        assert abs(applied - report["corpus"]["tokens"]) <= 3 * 520, "but for blocks under way"
    assert runs["bsp"]["dropped_tokens"] == 0 < runs["backup"]["dropped_tokens"]
    assert not any(figures["diverges"] for figures in summary.values())
    assert max(run["loss"] for run in runs.values()) < 0.9 * MODEL.untrained_loss
    assert "| backup |" in path.with_suffix(".md").read_text()
    assert "| bsp |" in capsys.readouterr().out


def test_who_is_slow() -> None:
    last = speeds(4, 0.5, 10.0, 0.0)
    assert [wait() for wait in last] == [0.5, 0.5, 0.5, 5.0]
    turns = speeds(2, 1.0, 10.0, 0.25)
    drawn = [wait() for wait in turns for _ in range(2_000)]
    assert set(drawn) == {1.0, 10.0}
    assert drawn.count(10.0) / len(drawn) == pytest.approx(0.25, abs=0.05)


def test_an_unknown_policy_and_a_short_corpus_are_refused(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="--policy none: one of bsp, ssp"):
        bench_policies(corpus, variants=("none",))
    assert main([str(corpus), "--words", "1000", "--policy", "bsp"]) == 2
    assert "a longer corpus is needed" in capsys.readouterr().err


def test_in_simulated_time_the_same_seed_gives_the_same_figures(
    corpus: Path, tmp_path: Path
) -> None:
    reports = [
        bench_simulated(
            corpus,
            Cluster(block=500),
            variants=SIMULATED,
            words=20_000,
            held_out=2_000,
            results=tmp_path,
        )
        for _ in range(2)
    ]
    first, again = (report["runs"] for report in reports)
    assert first == again
    assert first["backup"][0]["dropped_tokens"] > 0 == first["asp"][0]["dropped_tokens"]
    summary = reports[0]["summary"]
    # A barrier waits for the slow node: four blocks a second instead of 31, or as balance has it.
    assert summary["bsp"]["speed_to_bsp"] == 1.0
    for way in ("ssp-balanced", "backup", "asp", "easgd"):
        assert summary[way]["speed_to_bsp"] > 2.0, way
    # Forty blocks: none has learnt much, and none diverges.
    assert all(each["to_one_node"] < 1.5 for each in summary.values())
    assert list(tmp_path.glob("simulated-*.md"))


def test_shared_tables_are_held_against_one_node(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = ((1, "ssp"), (2, "hogwild"))
    report = bench_hogwild(
        corpus, 20_000, (3,), sides=sides, dim=8, held_out=2_000, results=tmp_path
    )
    (path,) = tmp_path.glob("hogwild-*.json")
    assert json.loads(path.read_text()) == report
    (alone,), (shared,) = report["runs"].values()
    assert alone["tokens"] == shared["tokens"] == report["corpus"]["tokens"]
    assert shared["loss"] == pytest.approx(alone["loss"], rel=0.05)
    assert max(alone["loss"], shared["loss"]) < MODEL.untrained_loss
    assert "| hogwild, 2 |" in capsys.readouterr().out
