"""The ceiling of `yeoron bench drift`: a test that knows where a planted word moved to."""

from __future__ import annotations

import numpy as np

from embedding.snapshots.usage import Usage
from embedding.trends import noise
from embedding.trends.moved import JudgedWords
from embedding.trends.permutation import between_times
from embedding.trends.replicas import UsedWords
from yeoron_bench.oracle import donors, oracle_p
from yeoron_bench.planting import ChangeKind, PlantedChange, PlantedCorpus

DIM, UNITS, WORDS = 30, 16, 40


def used(centres: np.ndarray, donor: np.ndarray, share: float, seed: int) -> UsedWords:
    """30 documents of each word, a share of them like its donor's."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((WORDS, UNITS), np.float32)
    sums = np.zeros((WORDS, UNITS, DIM), np.float32)
    for word in range(WORDS):
        of_donor = rng.random(30) < share
        said = np.where(of_donor[:, None], donor[word], centres[word])
        said = said + 1.5 * rng.standard_normal((30, DIM))
        unit = rng.integers(UNITS, size=30)
        np.add.at(counts[word], unit, 1.0)
        np.add.at(sums[word], unit, said / np.linalg.norm(said, axis=1)[:, None])
    means = sums / np.maximum(counts, 1e-9)[..., None]
    held = np.full(WORDS, 30, dtype=np.int64)
    usage = Usage(np.arange(WORDS), ["뉴스"] * WORDS, held, counts, means)
    return UsedWords(usage, np.arange(WORDS))


def judged(share: float) -> tuple[np.ndarray, np.ndarray]:
    """p of all words by the report's test, and by an oracle."""
    centres = np.random.default_rng(1).standard_normal((WORDS, DIM)) * 0.7
    order = np.roll(np.arange(WORDS), 1)
    sure = between_times([used(centres, centres, 0, 2)], used(centres, centres[order], share, 3))
    floor = noise.NoiseFloor(*np.zeros((3, 0)))
    names = [f"w{at}" for at in range(WORDS)]
    ranked = noise.RankedShifts(sure.z, sure.p, sure.p, floor)
    zeros, places = np.zeros(WORDS), np.arange(WORDS)
    words = JudgedWords(places, ranked, zeros.astype("f4"), zeros, floor, sure.grounds, places)
    moved = {names[at]: names[order[at]] for at in range(WORDS)}
    return sure.p, oracle_p(words, names, moved)


def test_an_oracle_is_surer_of_a_word_that_moved_and_of_no_other() -> None:
    plain, oracle = judged(0.3)
    assert (oracle < 0.01).mean() > 1.5 * (plain < 0.01).mean()
    _, still = judged(0.0)
    assert 0.3 < np.median(still) < 0.7


def test_a_planted_word_is_known_in_its_window_alone() -> None:
    planted = (
        PlantedChange("방", ChangeKind.EXCHANGED, 3, 0.6, 0, "거리"),
        PlantedChange("공", ChangeKind.RISEN, 3, 0.6, 0),
    )
    corpus = PlantedCorpus((), planted, frozenset())
    assert donors(corpus, 3) == {"방": "거리"}
    assert donors(corpus, 4) == {}
