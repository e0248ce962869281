"""The yardstick for calls: documents as units, by chance and planted."""

from __future__ import annotations

import json
import random
from argparse import Namespace

import numpy as np
import pytest

from benchmarks import documents as bench


def labels(units: int, permutations: int = 199) -> np.ndarray:
    observed = np.repeat([0.0, 1.0], units).astype(np.float32)[None]
    rng = np.random.default_rng(0)
    return np.concatenate(
        [observed, rng.permuted(np.repeat(observed, permutations, axis=0), axis=1)]
    )


def side(mean: np.ndarray, documents: int, seed: int, units: int = 16) -> bench.Uses:
    """One word; each document says its mean and as much noise."""
    rng = np.random.default_rng(seed)
    counts, sums = np.zeros(units, np.float32), np.zeros((units, len(mean)), np.float32)
    for unit in rng.integers(units, size=documents).tolist():
        counts[unit] += 1
        sums[unit] += mean + rng.normal(size=len(mean))
    return bench.Uses({"말": counts}, {"말": sums})


@pytest.mark.parametrize(("before", "after"), [(60, 60), (40, 400), (400, 40)])
def test_by_chance_a_small_p_is_as_rare_as_it_says(before: int, after: int) -> None:
    mean = np.zeros(12)
    told = [
        bench.tested(side(mean, before, 2 * at), side(mean, after, 2 * at + 1), "말", labels(16))[1]
        for at in range(200)
    ]
    assert (np.array(told) <= 0.05).mean() < 0.1
    assert min(told) > 1e-5


def test_the_more_a_word_moved_the_surer_it_is() -> None:
    ps = []
    for moved in (0.0, 0.5, 1.0, 2.0):
        sides = side(np.zeros(12), 60, 1), side(np.full(12, moved), 60, 2)
        ps.append(bench.tested(*sides, "말", labels(16))[1])
    assert ps == sorted(ps, reverse=True)
    assert ps[-1] < 1e-6 < ps[0]


def test_a_sentence_in_several_texts_counts_once_and_a_topic_is_taken_off() -> None:
    words = list("가나다라마바")
    rows = {word: at for at, word in enumerate(words)}
    told = np.eye(6, dtype=np.float32)
    rng = np.random.default_rng(0)
    uses = bench.uses_of([[words], [words], [["가", "나"]]], rows, told, 4, rng)
    assert uses.documents["다"].sum() == 1
    assert uses.documents["가"].sum() == 2
    said = bench._document([(["가", "나"], told[:2])], np.full(6, 0.25))
    assert said["가"].tolist() == [-0.25, 0.75, -0.25, -0.25, -0.25, -0.25]


def test_a_word_whose_company_changed_is_called_and_no_other(tmp_path, capsys) -> None:
    dice, lines = random.Random(3), []
    topics = [[f"t{topic}w{at}" for at in range(30)] for topic in range(2)]
    for month, topic in ((1, 0), (2, 1)):
        for _ in range(150):
            text = [dice.choice(topics[dice.randrange(2)]) for _ in range(6)]
            own = [dice.choice(topics[topic]) for _ in range(8)]
            own[4] = "배"
            date = f"2020-{month:02}-{1 + dice.randrange(28):02}"
            lines.append(json.dumps({"date": date, "text": f"{' '.join(text)}\n{' '.join(own)}"}))
    rows = {word: at for at, word in enumerate([*topics[0], *topics[1], "배"])}
    vectors = np.random.default_rng(0).normal(size=(61, 20)).astype(np.float32)
    vectors[:30] += 1.0
    vectors[30:60] -= 1.0
    shot = Namespace(words=list(rows), vectors=vectors, counts=np.full(61, 100))
    texts = [[s.split() for s in json.loads(line)["text"].split("\n")] for line in lines]
    given = Namespace(units=8, permutations=199, least=6)
    found = bench.compare(texts[:150], texts[150:], shot, given)
    assert [word for word, _, q in found if q <= 0.05][:1] == ["배"]
    mixed = [texts[at] for at in np.random.default_rng(1).permutation(300)]
    by_chance = bench.compare(mixed[:150], mixed[150:], shot, given)
    assert not [word for word, _, q in by_chance if q <= 0.05]


def test_a_window_that_cannot_be_judged_is_one_sentence(tmp_path, capsys) -> None:
    tokens = tmp_path / "tokens.jsonl"
    tokens.write_text('{"date": "2020-01-01", "text": "말"}\n', encoding="utf-8")
    assert bench.main([str(tokens), str(tmp_path / "store"), "--window", "2020-02"]) == 2
    assert "window 2020-02" in capsys.readouterr().err
