"""N-grams of Korean and other words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.errors import InputError
from embedding.models.base import LocalBlock, make_trainer
from embedding.models.config import ModelConfig
from embedding.models.subwords import gram_buckets, is_korean, jamo, ngrams


def test_korean_words_give_syllables_and_jamo() -> None:
    grams = ngrams("여론")
    assert {"여", "론", "여론", "<여", "론>", "<여론>"} <= set(grams)
    spelt = jamo("여론")
    assert len(spelt) == 6
    assert spelt[2] == "\u11a7"  # 여 has no final consonant
    assert "\u0001" + spelt[:3] in grams
    assert all(3 <= len(gram) - 1 <= 5 for gram in grams if gram.startswith("\u0001"))
    assert all(len(gram) <= 4 for gram in grams if not gram.startswith("\u0001"))


def test_other_words_give_three_to_six_letters() -> None:
    assert ngrams("cat") == ("<ca", "cat", "at>", "<cat", "cat>", "<cat>")
    assert not is_korean("cat")
    assert ngrams("") == ()


@given(st.text(max_size=80))
def test_any_text_has_stable_buckets_within_bounds(word: str) -> None:
    one, two = gram_buckets(word, 97), gram_buckets(word, 97)
    assert np.array_equal(one, two)
    assert np.all(np.diff(one) > 0)
    assert not len(one) or 0 <= one[0] <= one[-1] < 97


def test_hashes_do_not_move_between_versions() -> None:
    # Snapshots hold rows by bucket: another hash would give every n-gram another row.
    assert gram_buckets("코로나", 200_000).tolist()[:3] == [7587, 8709, 14250]


def test_a_new_word_starts_near_the_words_it_is_made_of() -> None:
    table = np.random.default_rng(0).standard_normal((5000, 300)).astype(np.float32)

    def cosine(a: str, b: str) -> float:
        x, y = (table[gram_buckets(word, 5000)].mean(axis=0) for word in (a, b))
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    assert cosine("코로나바이러스", "코로나") > 0.3
    assert abs(cosine("코로나바이러스", "부동산")) < 0.3
    assert not len(gram_buckets("", 5000))


@pytest.mark.parametrize(
    ("rows", "offsets", "message"),
    [
        ([9], [0, 1, 1], "n-gram rows 9 to 9"),
        ([0], [0, 1, 1], "n-gram rows 0 to 0"),
        ([2], [0, 1], "cover 1 words"),
        ([2, 2], [0, 2, 1], "cover 2 words and 1 n-grams"),
        ([2, 2, 2], [0, 4, 3], "must not fall"),
    ],
)
def test_ngrams_that_do_not_fit_are_refused(
    rows: list[int], offsets: list[int], message: str
) -> None:
    block = LocalBlock(
        np.array([0, 1], np.int32),
        np.array([0, 2], np.int32),
        np.ones(2, np.float32),
        np.array([0, 1], np.int32),
        subwords=np.array(rows, np.int32),
        subword_offsets=np.array(offsets, np.int32),
    )
    table = np.zeros((4, 3), np.float32)
    with pytest.raises(InputError, match=message):
        make_trainer(ModelConfig(model="fasttext", dim=3)).train(
            block, table, table.copy(), learning_rate=0.1, seed=1
        )
