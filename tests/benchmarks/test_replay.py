"""The benchmark of replay priorities, on a corpus of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.dated import read
from benchmarks.replay import ARMS, _reach, bench_replay, main, verdict
from benchmarks.replaying import SMOOTH, Run
from embedding.kernel.errors import YeoronError
from embedding.models.config import ModelConfig


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """220,000 words of two topics that never meet, newest first."""
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("corpus") / "dated.jsonl"
    with path.open("w") as out:
        for at in range(1_100):
            words = [f"w{(at % 2) * 50 + x}" for x in random.integers(0, 50, 200)]
            text = ". ".join(" ".join(words[i : i + 10]) for i in range(0, 200, 10))
            one = {"date": f"{3_000 - at}-01-01", "title": f"id{3_000 - at}", "text": text}
            out.write(json.dumps(one) + "\n")
    return path


def test_it_writes_what_it_measured(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ModelConfig(dim=8, learning_rate=0.1, sample=0)
    report = bench_replay(corpus, 220_000, 2, config=config, memory=20_000, results=tmp_path)
    (path,) = tmp_path.glob("replay-*-dated.json")
    assert json.loads(path.read_text()) == report
    assert {"when", "hardware", "versions", "config", "corpus"} <= set(report)
    assert set(report["arms"]) == set(ARMS)
    for found in report["arms"].values():
        assert len(found["held_out"]) == len(found["tokens_to_reach_uniform"]) == 2
        # Two topics of 50 words: knowing the topic is worth some nats of the untrained 4.16.
        assert all(1 < loss < 3.8 for loss in found["held_out"])
        assert found["mean_weight_of_a_token"] == pytest.approx([1, 1], abs=0.1)
    tokens = [{curve["tokens"][-1] for curve in a["curves"]} for a in report["arms"].values()]
    assert len(set.union(*tokens)) == 1  # every memory is given the same number of tokens
    shown = capsys.readouterr().out
    assert all(arm in shown for arm in ARMS)
    assert "Rank correlation" in shown


def test_the_stream_is_in_time_order_and_the_held_out_documents_are_not_in_it(
    corpus: Path,
) -> None:
    stream = read(corpus, 10_000_000, ModelConfig(window=3))
    assert len(stream.blocks) == len(stream.fresh) == len(stream.rows) == 20
    names = [word for block in stream.blocks for word in block.words if word.startswith("id")]
    assert names == sorted(names)
    every = [f"id{year}" for year in range(1_901, 3_001)]
    missing = set(every[: len(names)]) - set(names)
    assert missing == set(every[19 : len(names) : 20])
    assert len(stream.held_out.centres) == 30_000


def test_reaching_a_loss_is_read_between_two_blocks() -> None:
    run = Run(tokens=[100 * (i + 1) for i in range(10)], held_out=[4.0] * SMOOTH + [3.0] * SMOOTH)
    assert run.curve()[-1] == pytest.approx(3.0)
    assert run.until(3.9) == pytest.approx(550)
    assert run.until(4.5) == 100
    assert run.until(2.0) is None


def test_harm_is_said_plainly() -> None:
    arms = {
        "uniform": {"held_out": [2.0, 2.1, 2.0]},
        "a": {"held_out": [1.9, 2.0, 1.9]},
        "b": {"held_out": [2.1, 2.2, 2.1]},
        "c": {"held_out": [2.1, 2.0, 2.1]},
    }
    better, worse, neither = verdict(arms)
    assert better.startswith("a: better than uniform with every seed")
    assert worse.startswith("b: worse than uniform with every seed")
    assert neither.startswith("c: no difference")
    assert _reach([0.5, None, 0.7]) == "70.0% (50.0% to never)"
    assert _reach([None]) == "never (never to never)"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.txt", None, "there is no such file"),
        ("short.txt", "a b c\n" * 100, "at least 20 are needed"),
        ("bad.jsonl", "no json\n", "is accepted"),
        ("undated.jsonl", '{"text": "a b"}\n', "is accepted"),
        ("list.jsonl", "[1]\n", "is accepted"),
    ],
)
def test_a_corpus_that_cannot_work_is_refused(
    name: str, text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    assert main([str(path), "--results", str(tmp_path / "results")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("change", [{"seeds": 0}, {"ratio": 0.0}, {"words": 0}, {"memory": 3}])
def test_settings_that_compare_nothing_are_refused(
    change: dict[str, int], corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(YeoronError, match=r"at least one seed|replay_tokens"):
        bench_replay(corpus, **({"words": 1_000} | change), results=tmp_path)  # type: ignore[arg-type]
