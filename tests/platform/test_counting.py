"""Counting before learning gives the words that learning will meet, in order of their counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.records import TokenBlock
from embedding.text.config import TextConfig
from embedding.text.plain import code_lines
from embedding.training import vocabulary
from embedding.training.vocabulary import count_blocks, count_lines

CONFIG = TextConfig(tokenizer="whitespace", mask=False).model_copy(update={"max_length": 8})
TEXTS = st.lists(st.text(st.sampled_from("ab 가ㅋ!.\n\t"), max_size=30), max_size=6)


def plain(texts: list[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for text in texts:
        coded = code_lines(text.split("\n"), CONFIG)
        found.update(coded.words[code] for code in coded.codes)
    return found


@given(TEXTS)
def test_the_counts_are_those_of_the_words_that_are_learnt(texts: list[str]) -> None:
    counted = count_lines(texts, CONFIG)
    wanted = sorted(plain(texts).items(), key=lambda item: (-item[1], item[0]))
    assert list(zip(counted.words.to_pylist(), counted.counts.tolist(), strict=True)) == wanted
    assert counted.tokens == sum(count for _, count in wanted)


def test_batches_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "BATCH", 10)
    texts = ["b a b\n", "c b a\n", "a b", "c"] * 50
    counted = count_lines(texts, CONFIG, threads=3)
    assert counted.words.to_pylist() == ["b", "a", "c"]
    assert counted.counts.tolist() == [200, 150, 100]


def test_words_that_occur_often_enough() -> None:
    counted = count_lines(["a a a b b c c d"], CONFIG)
    assert counted.at_least(2).words.to_pylist() == ["a", "b", "c"]
    assert counted.at_least(2).tokens == 7
    assert counted.at_least(4).words.to_pylist() == []
    assert counted.at_least(1).counts.tolist() == [3, 2, 2, 1]


def test_the_rarest_are_forgotten_when_there_are_too_many() -> None:
    texts = [" ".join(["often"] * 3 + [f"w{n}" for n in range(at, at + 40)]) for at in (0, 40, 80)]
    counted = count_lines(texts, CONFIG, most=50)
    assert len(counted.words) == 45
    assert counted.words[0].as_py() == "often"
    assert counted.counts[0] == 9


def test_blocks_of_any_tokenizer_are_counted() -> None:
    blocks = [
        TokenBlock.build(
            "news",
            [[["감염", "병"], ["감염"]]],
            published=[0.0],
            available=[0.0],
            fetched=[0.0],
            keys=["a"],
        )
    ] * 2
    counted = count_blocks(blocks)
    assert counted.words.to_pylist() == ["감염", "병"]
    np.testing.assert_array_equal(counted.counts, [4, 2])


def test_nothing_to_count() -> None:
    assert count_lines([], CONFIG).tokens == 0
    assert count_lines(["\n \n"], CONFIG).at_least(1).words.to_pylist() == []
