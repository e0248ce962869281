"""Who moved a word: shares that add up to the change, and whether it stands without some."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from embedding.show.terminal import ranking_table
from embedding.snapshots.usage import Usage
from embedding.trends.moved import support
from embedding.trends.permutation import between_times
from embedding.trends.replicas import UsedWords
from embedding.trends.report import build_report
from embedding.trends.rows import Support

DIM, UNITS, WORDS, DOCUMENTS = 20, 16, 80, 200
BOTH, NEWS_ONLY, ONE_AUTHOR, NONE = 0, 1, 2, 3


def documents(rng, centres: np.ndarray, loud: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Documents [n, UNITS] and sums of their unit vectors; `loud`: a word of one author's only."""
    counts = np.zeros((WORDS, UNITS), np.float32)
    sums = np.zeros((WORDS, UNITS, DIM), np.float32)
    for word in range(WORDS):
        said = centres[word] + rng.standard_normal((DOCUMENTS, DIM))
        unit = rng.integers(UNITS, size=DOCUMENTS)
        if word == loud:
            said[unit == 5] += 9.0 * np.eye(DIM)[0]
        said /= np.linalg.norm(said, axis=1)[:, None]
        np.add.at(counts[word], unit, 1.0)
        np.add.at(sums[word], unit, said)
    return counts, sums


def used(sides: dict[str, tuple[np.ndarray, np.ndarray]]) -> UsedWords:
    counts = np.concatenate([counts for counts, _ in sides.values()])
    sums = np.concatenate([sums for _, sums in sides.values()])
    usage = Usage(
        np.tile(np.arange(WORDS), len(sides)),
        [name for name in sides for _ in range(WORDS)],
        counts.sum(axis=1).astype(np.int64),
        counts,
        sums / np.maximum(counts, 1e-9)[..., None],
    )
    return UsedWords(usage, np.arange(WORDS))


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((WORDS, DIM))
    news, board = centres.copy(), centres.copy()
    for word, places in ((BOTH, (news, board)), (NEWS_ONLY, (news,))):
        for place in places:
            place[word] = -place[word]
    before = used({"뉴스": documents(rng, centres), "글판": documents(rng, centres)})
    after = used({"뉴스": documents(rng, news), "글판": documents(rng, board, ONE_AUTHOR)})
    return between_times([before], after)


def test_what_sources_brought_adds_up_to_the_change(judged) -> None:
    both, news = (support(judged.grounds, word) for word in (BOTH, NEWS_ONLY))
    for one in (both, news):
        assert sum(one.sources.values()) == pytest.approx(1.0, abs=1e-4)
        assert one.sources.keys() == {"뉴스", "글판"}
    assert both.sources["뉴스"] == pytest.approx(0.5, abs=0.1)
    assert news.sources["뉴스"] > 0.9


def test_a_change_of_all_stands_without_any_source_and_any_author(judged) -> None:
    found = support(judged.grounds, BOTH)
    assert found.needs == ()
    assert not found.few_authors
    assert found.authors < 0.15


def test_a_change_of_one_source_does_not_stand_without_it(judged) -> None:
    found = support(judged.grounds, NEWS_ONLY)
    assert found.needs == ("뉴스",)
    assert not found.few_authors


def test_a_change_that_one_author_made_does_not_stand_without_that_one(judged) -> None:
    found = support(judged.grounds, ONE_AUTHOR)
    assert found.authors > 0.3
    assert found.few_authors
    assert judged.p[ONE_AUTHOR] > 0.05, "nor is it called"


def test_a_change_that_the_busiest_authors_made_does_not_stand_without_them() -> None:
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((WORDS, DIM))
    before = used({"글판": documents(rng, centres)})
    theirs = np.zeros((WORDS, UNITS, DIM), np.float32), np.zeros((WORDS, UNITS), np.float32)
    sums, counts = theirs
    counts[BOTH] = 6.0
    sums[BOTH] = 6.0 * np.eye(DIM)[0]
    rest = documents(rng, centres)
    whole = used({"글판": (rest[0] + counts, rest[1] + sums)})
    busiest = used({"글판": (counts, sums)}).usage
    after = UsedWords(replace(whole.usage, busiest=busiest), whole.rows)
    judged = between_times([before], after)
    found = support(judged.grounds, BOTH)
    assert judged.p[BOTH] < 0.001
    assert not found.few_authors, "each unit has some of them"
    assert found.without_busiest > 0.05
    assert found.busiest_authors
    assert support(between_times([before], whole).grounds, BOTH).without_busiest is None


def test_the_table_names_what_rests_on_few(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=60)))

    def resting(rests: Support | None) -> list[str]:
        row = replace(report.moved[0], word="방", support=rests)
        caption = str(ranking_table(replace(report, moved=(row,)), "moved").caption)
        return re.findall(r"(?:Mostly|Not without) [^:]*: [^.]*\.", caption)

    few = Support({"뉴스": 0.9, "글판": 0.1}, {"뉴스": 0.4, "글판": 0.001}, 0.8, 0.3)
    sure = Support({"뉴스": 1.0}, {}, 0.1, 0.001)
    busy = replace(sure, without_busiest=0.3)
    assert resting(busy) == ["Not without the busiest 1 % of authors: 방."]
    assert resting(few) == ["Mostly one group of authors: 방.", "Not without 뉴스: 방."]
    assert resting(sure) == resting(None) == []
