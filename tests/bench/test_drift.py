"""`yeoron bench drift`: two trainings side by side, and trainings that are kept."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embedding.kernel.errors import ConfigError
from yeoron_bench.detection import Judgement
from yeoron_bench.planting import PlantedCorpus

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from yeoron_bench import driftjudging

    yield driftjudging
    sys.modules.pop("yeoron_bench.driftjudging", None)


def judged(scores: list[float], flagged: list[bool]) -> Judgement:
    words = [f"w{at}" for at in range(len(scores))]
    return Judgement(3, words, np.array(scores), np.array(flagged), np.full(len(words), 20))


def test_two_trainings_agree_on_the_ranking_and_on_what_they_call(bench, monkeypatch):
    monkeypatch.setattr(bench, "_FIRST", 2)
    one = judged([4, 3, 2, 1], [True, True, False, False])
    other = judged([4, 1, 3, 2], [True, False, False, False])
    (row,) = bench.overlaps(
        [bench.JudgedTraining("usage", [one, one], 0.0)],
        [bench.JudgedTraining("usage", [one, other], 0.0)],
    )
    assert row["ranked_by_window"] == [1.0, 0.5]
    assert row["ranked"] == 0.75
    # 2 + 1 words in common of 2 + 2 and 2 + 1.
    assert row["called"] == pytest.approx(6 / 7, abs=1e-3)
    assert (row["called_by_one"], row["called_by_other"]) == (4, 3)


def test_a_training_that_was_kept_is_taken_only_for_the_same_settings(bench, monkeypatch, tmp_path):
    trained = []
    monkeypatch.setattr(bench, "train_corpus", trained.append)
    corpus = PlantedCorpus(((((("말", "글"),),)),), (), frozenset())
    setting = bench.DriftSetting(
        Path("some.cut.jsonl"), stores=tmp_path, planting=3, replay=1.0, block=1000, memory=2000
    )
    for dim in (8, 8, 16):
        given = replace(setting, dim=dim)
        with bench._folder(given, 4) as folder:
            bench._trained(corpus, folder, given, 4)
    assert folder.name == "some-planting3-training4"
    assert [request.model.dim for request in trained] == [8, 16]
    assert not (folder / "planted.jsonl").exists()
    assert json.loads((folder / "settings.json").read_text(encoding="utf-8"))["planting"] == 3


def test_halves_of_the_same_window_are_judged_by_one_another_alone(
    bench, monkeypatch, tmp_path, capsys
):
    from yeoron_bench import drift

    corpus = tmp_path / "dated.jsonl"
    corpus.write_text(
        "".join(f'{{"date": "2020-01-{1 + at:02d}", "text": "말 글"}}\n' for at in range(24)),
        encoding="utf-8",
    )
    compares, records = [], []

    def ours(corpus, which, given, seed):
        compares.append(bench.past_windows(given))
        called = [
            Judgement(each.window, each.words, np.ones(2), np.array([True, False]), each.mentions)
            for each in which
        ]
        return [bench.JudgedTraining("usage", called, 0.0)]

    monkeypatch.setattr(drift, "ours", ours)
    monkeypatch.setattr(drift, "keep", lambda record, *_, **__: records.append(record) or tmp_path)
    setting = bench.DriftSetting(corpus, windows=4, peers=False, least=1)
    for null in ("same-window", "shuffled"):
        drift.bench_drift(replace(setting, null=null))
    halves, shuffled = (record["runs"][0] for record in records)
    assert compares == [1, bench.NodeConfig().past_windows]
    assert halves["called_by_window"] == [1, 1], "the windows 1 and 3"
    assert shuffled["called_by_window"] == [1, 1, 1]
    assert halves["false_discovery"] == 1.0, "nothing changed, so every call is false"
    assert "called 2, false 1.000" in capsys.readouterr().out
    assert records[0]["settings"]["null"] == "same-window"


def test_halves_of_an_odd_number_of_windows_are_told(bench, tmp_path):
    from yeoron_bench import drift

    corpus = tmp_path / "dated.jsonl"
    corpus.write_text('{"date": "2020-01-01", "text": "말 글"}\n', encoding="utf-8")
    setting = bench.DriftSetting(corpus, null="same-window", windows=5, peers=False)
    with pytest.raises(ConfigError, match="even number"):
        drift.bench_drift(setting)
