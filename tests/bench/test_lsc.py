"""`yeoron bench lsc`: contexts of mentions, and every estimator on a generated set."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from embedding.kernel.errors import InputError
from embedding.snapshots.nearness import unit_rows
from yeoron_bench.changeset import Sentences
from yeoron_bench.options import LscSetting

sys.path.insert(0, str(Path(__file__).parent))

import changesets

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from yeoron_bench import lsc

    return lsc


@pytest.fixture
def contexts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from yeoron_bench import lscours

    return lscours


def test_a_mention_says_the_words_around_it_within_its_sentence(contexts) -> None:
    told = np.eye(5, dtype=np.float32)
    side = Sentences(np.array([0, 1, 2, 3, 1, 4, 1], np.int32), np.array([0, 4, 6, 7]))
    known, word = np.arange(5, dtype=np.int32), np.array([1])
    found = contexts.context_means(side, word, known, told, 1)
    # The third sentence has no other word, so its mention says nothing.
    assert found[0] == pytest.approx((unit_rows(told[[0]] + told[[2]])[0] + told[4]) / 2)
    first = Sentences(side.tokens[:4], side.offsets[:2])
    nearer = contexts.context_means(first, word, known, told, 2)
    assert nearer[0] == pytest.approx(np.array([2, 0, 2, 1, 0]) / 3)
    unknown = np.array([0, 1, -1, 3, 4], np.int32)
    less = contexts.context_means(first, word, unknown, told, 1)
    assert less[0] == pytest.approx(told[0])
    assert np.isnan(contexts.context_means(first, np.array([4]), known, told, 1)).all()


def test_frequent_words_count_less_and_the_mean_is_taken_off(contexts) -> None:
    vectors = np.random.default_rng(1).normal(size=(50, 8)).astype(np.float32) + 1
    counts = np.r_[5_000, np.full(49, 10)]
    weighed = contexts.weighted(vectors, counts)
    lengths = np.linalg.norm(weighed, axis=1)
    assert lengths[0] < 0.1 * np.median(lengths)
    assert np.abs((weighed * counts[:, None]).sum(axis=0)).max() < 1e-2


def test_names_in_the_training_are_distinct_and_unchanged_by_the_text_pipeline(bench) -> None:
    from embedding.text.config import TextConfig
    from embedding.text.pipeline import TextPipeline
    from yeoron_bench.lscours import spelt

    names = [spelt(at) for at in range(20_000)]
    assert len(set(names)) == len(names)
    pipeline = TextPipeline(TextConfig(tokenizer="whitespace", mask=False))
    assert pipeline.words(" ".join(names)) == [names]


def test_every_estimator_is_judged_on_a_generated_set(bench, tmp_path: Path, capsys) -> None:
    folder = changesets.write(tmp_path / "generated")
    setting = LscSetting(folder, seeds=1, dim=16, rehearsal=5)
    bench.bench_lsc(setting, as_json=True, results=tmp_path / "results")
    found = json.loads(capsys.readouterr().out)
    (written,) = (tmp_path / "results").glob("lsc-*-generated.json")
    assert json.loads(written.read_text()) == found
    assert "| APD |" in written.with_suffix(".md").read_text()
    names = {"usage", "procrustes", "neighbours", "APD", "PRT"}
    assert names < set(found["mean"])
    assert [name for name in found["mean"] if name.startswith("gensim")]
    for name in ("usage", "APD", "PRT"):
        assert found["mean"][name]["spearman"] > 0.8, name
    assert found["mean"]["PRT"]["accuracy"] > 0.6


def test_a_target_that_nothing_is_known_of_gets_the_median(bench) -> None:
    scores = np.array([np.nan, 5.0, 1.0, 3.0, *np.tile([0.0, 2.0], 50)])
    assert bench.standardised(scores, 4).tolist() == pytest.approx([2, 4, 0, 2])


def test_a_set_that_cannot_be_read_ends_with_a_sentence_and_no_result(
    bench, tmp_path: Path, capsys
) -> None:
    folder = changesets.write(tmp_path / "set", sentences=90)
    (folder / "truth" / "graded.txt").unlink()
    with pytest.raises(InputError, match=r"graded\.txt: there is no such file"):
        bench.bench_lsc(LscSetting(folder), as_json=False, results=tmp_path / "results")
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "results").exists()
