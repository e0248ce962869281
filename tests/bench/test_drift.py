"""`yeoron bench drift`: what is written down of each estimator and seed."""

from __future__ import annotations

import numpy as np

from yeoron_bench import drift
from yeoron_bench.detection import Judgement
from yeoron_bench.driftjudging import DriftSetting, JudgedTraining
from yeoron_bench.planting import PlantedCorpus


def test_each_seed_plants_anew_and_its_calls_are_counted_by_window(monkeypatch, tmp_path, capsys):
    corpus = tmp_path / "dated.jsonl"
    corpus.write_text(
        "".join(f'{{"date": "2020-01-{1 + at:02d}", "text": "말 글"}}\n' for at in range(24)),
        encoding="utf-8",
    )
    seeds, records = [], []

    def planted(documents, config):
        seeds.append(config.seed)
        return PlantedCorpus((tuple(documents[:12]), tuple(documents[12:])), (), frozenset())

    def ours(corpus, which, given, seed):
        called = [
            Judgement(each.window, each.words, np.ones(2), np.array([True, False]), each.mentions)
            for each in which
        ]
        return [JudgedTraining("usage", called, 0.0)]

    monkeypatch.setattr(drift, "plant", planted)
    monkeypatch.setattr(drift, "ours", ours)
    monkeypatch.setattr(drift, "keep", lambda record, *_, **__: records.append(record) or tmp_path)
    drift.bench_drift(DriftSetting(corpus, seeds=2, first=7, peers=False, least=1))
    first, second = records[0]["runs"]
    assert seeds == [first["seed"], second["seed"]] == [7, 8]
    assert first["called_by_window"] == [1]
    assert first["false_discovery"] == 1.0, "nothing changed, so every call is false"
    assert "called 1, false 1.000" in capsys.readouterr().out
    assert records[0]["settings"]["seeds"] == 2
