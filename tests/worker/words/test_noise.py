"""Noise words: of new words at once, and afresh where no row travels for it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from in_process import InProcess, make_state

from embedding.exchange.protocol import Welcome
from embedding.kernel.records import Calendar, IntArray, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.learning.planning import CodedText
from embedding.worker.learning.wordtables import WordTables, _repeat
from embedding.worker.words.lexicon import NodeLexicon

KEPT = ModelConfig(dim=4, sample=0.0)


def block(*words: str) -> TokenBlock:
    return TokenBlock.build("뉴스", [[list(words)]], published=[0.0], keys=["k"])


def lexicon(words: int, seed: int = 1) -> NodeLexicon:
    """Words 0, 1, … with a row, some frequent and most of them rare."""
    known = NodeLexicon()
    known.ids = np.arange(words, dtype=np.int64)
    known.counts = np.random.default_rng(seed).zipf(1.5, words).clip(max=10_000).astype(np.float64)
    return known


def draws(known: NodeLexicon, **settings: int) -> WordTables:
    model = KEPT.model_copy(update={"move": 12, **settings})
    return WordTables(InProcess(make_state()), known, model, every=1000, welcome=Welcome())


def text(read: IntArray, tokens: int) -> list[CodedText]:
    """Its words in turn."""
    codes = np.resize(np.arange(len(read), dtype=np.int32), tokens)
    return [CodedText(read, codes, np.array([0, tokens], dtype=np.int32))]


def test_a_new_word_is_noise_in_the_block_that_brings_it() -> None:
    """Also when the server's counts were read a moment ago."""
    state = make_state(min_count=3)
    node = Learner(
        InProcess(state),
        make_trainer(KEPT),
        None,
        LearnerSetup(
            node="n0",
            model=KEPT,
            config=NodeConfig(replay_ratio=0.0).model_copy(update={"vocabulary_blocks": 1000}),
            calendar=Calendar(WindowUnit.DAY),
        ),
        welcome=Welcome(min_count=3),
    )
    for _ in range(8):
        node.learn([block(*["물가", "경제"] * 200)])
    prepared = node.prepare([block(*["물가", "경제", "환율"] * 100)])
    new = int(state.words.admit(["환율"], np.ones(1, dtype=np.int64))[0])
    drawn = prepared.planned.contexts[prepared.planned.block.pool]
    assert new in drawn


@pytest.mark.parametrize("times", [2, 6, 12])
def test_more_noise_of_the_words_of_a_block_takes_no_more_rows(times: int) -> None:
    known, read = lexicon(5_000), np.arange(0, 5_000, 7, dtype=np.int64)
    few, many = (draws(known, noise_own=n) for n in (1, times))
    rows = []
    for each in (few, many):
        drawn = each.noise(text(read, 2_000), 5)
        rows.append(len(np.setdiff1d(drawn, read)))
        assert len(drawn) == (1 if each is few else times) * 1_000
    assert rows[1] == pytest.approx(rows[0], rel=0.1)
    own = [np.intersect1d(each.noise(text(read, 2_000), 5), read) for each in (few, many)]
    assert len(own[1]) > len(own[0])


def test_noise_words_are_drawn_as_often_as_their_counts_say() -> None:
    known, read = lexicon(50), np.arange(0, 50, 3, dtype=np.int64)
    noise = draws(known, noise_own=4)
    drawn: Counter[int] = Counter()
    for seed in range(400):
        drawn.update(noise.noise(text(read, 200), seed).tolist())
    expected = known.counts**0.75 / (known.counts**0.75).sum()
    found = np.array([drawn[word] for word in range(50)]) / drawn.total()
    assert found == pytest.approx(expected, rel=0.12, abs=0.001)


def test_no_noise_is_drawn_that_the_windows_of_kept_words_do_not_reach() -> None:
    noise = draws(lexicon(50), noise_own=12, move=6, span=64)
    for known, kept in (([3, 6, 9, 12], 2_000), ([-1, 3, -1, -1], 500)):
        drawn = noise.noise(text(np.array(known, dtype=np.int64), 2_000), 5)
        assert len(drawn) == min(12_000, 64 + 6 * kept)


def test_words_without_a_row_are_no_noise() -> None:
    noise = draws(lexicon(20), noise_own=6)
    drawn = noise.noise(text(np.array([-1, 3, -1], dtype=np.int64), 100), 1)
    assert drawn.min() >= 0


def test_nothing_is_drawn_before_anything_was_counted() -> None:
    noise = draws(NodeLexicon())
    assert not len(noise.noise(text(np.array([-1], dtype=np.int64), 100), 1))
    assert not len(noise.some_noise(100, 1))


@pytest.mark.parametrize("length", [0, 1, 11, 12, 13, 500])
def test_what_is_drawn_away_from_the_block_is_used_in_turn(length: int) -> None:
    rng = np.random.default_rng(length)
    own = rng.random(40) < 0.3
    drawn = rng.integers(0, 40, length).astype(np.int32)
    expected = drawn.copy()
    away = np.flatnonzero(~own[drawn])
    expected[away] = np.resize(drawn[away[: -(-len(away) // 12)]], len(away))
    _repeat(drawn, own, 12, np.empty(length, dtype=np.int32))
    assert drawn.tolist() == expected.tolist()
