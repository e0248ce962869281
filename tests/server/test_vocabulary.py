"""Admission, running counts, eviction, versions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.errors import RefusedError
from embedding.server.vocabulary import Vocabulary


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def make(**changes) -> Vocabulary:
    settings_ = {
        "min_count": 3,
        "max_words": 100,
        "max_candidates": 1000,
        "half_life_tokens": None,
        **changes,
    }
    return Vocabulary(**settings_)


def read(vocabulary: Vocabulary, *words: str, n: int = 1, seen: float = 0.0, tokens: int = 0):
    size = len(words)
    none = np.empty(0, dtype=np.int64)
    counts, times = np.full(size, n), np.full(size, seen)
    vocabulary.count(none, none, none * 1.0, list(words), counts, times, tokens or size * n)


def offer(vocabulary: Vocabulary, *words: str, n: int = 1) -> np.ndarray:
    vocabulary.admit(vocabulary.plan(list(words), np.full(len(words), n)))
    return vocabulary.ids(list(words))


def test_a_word_is_admitted_once_committed_and_offered_counts_reach_the_minimum():
    vocabulary = make()
    assert offer(vocabulary, "말", n=2).tolist() == [-1]
    assert offer(vocabulary, "말", n=2).tolist() == [-1], "offering does not count"
    read(vocabulary, "말", n=1)
    assert offer(vocabulary, "말", n=2).tolist() == [0]
    assert vocabulary.counts(ints(0)).tolist() == [1.0], "only what was committed is counted"


def test_words_offered_twice_get_one_id():
    vocabulary = make()
    assert offer(vocabulary, "말", "글", "말", n=3).tolist() == [0, 1, 0]
    assert offer(vocabulary, "글", "말", n=3).tolist() == [1, 0]
    assert vocabulary.next_id == 2


def test_counts_and_last_seen_follow_what_was_read():
    vocabulary = make()
    offer(vocabulary, "말", n=3)
    seen = np.array([9.0, 4.0])
    vocabulary.count(ints(0, 0), ints(1, 4), seen, ["말"], ints(2), np.array([3.0]), 7)
    assert vocabulary.counts(ints(0)).tolist() == [7.0]
    assert vocabulary.last_seen(ints(0)).tolist() == [9.0]


def test_counts_halve_after_the_half_life_for_words_and_candidates_alike():
    vocabulary = make(half_life_tokens=100.0)
    offer(vocabulary, "말", n=3)
    read(vocabulary, "말", "글", n=8, tokens=100)
    assert vocabulary.counts(ints(0))[0] == pytest.approx(4.0)
    read(vocabulary, "다른", tokens=100)
    assert vocabulary.counts(ints(0))[0] == pytest.approx(2.0)
    assert vocabulary.candidates["글"] / vocabulary.decay.weight == pytest.approx(2.0)


def test_forgetting_goes_on_over_very_many_half_lives():
    vocabulary = make(half_life_tokens=10.0)
    offer(vocabulary, "말", n=3)
    for _ in range(500):
        read(vocabulary, "말", n=10)
    # Σ 10·2^-k for k = 1, 2, …
    assert vocabulary.counts(ints(0))[0] == pytest.approx(10.0)
    assert np.isfinite(vocabulary.decay.weight)


def test_the_rarest_then_the_oldest_are_evicted_and_their_ids_never_come_back():
    vocabulary = make(min_count=1, max_words=3)
    offer(vocabulary, "가", "나", "다")
    read(vocabulary, "가", n=5)
    read(vocabulary, "나", n=1, seen=1.0)
    read(vocabulary, "다", n=1, seen=2.0)
    assert offer(vocabulary, "라").tolist() == [3]
    assert vocabulary.ids(["가", "나", "다", "라"]).tolist() == [0, -1, 2, 3]
    assert vocabulary.slots(ints(1, 3), "test").tolist() == [-1, 1], "the slot is used again"
    assert offer(vocabulary, "나").tolist() == [4]
    assert vocabulary.rows == 3


def test_ids_never_given_are_refused():
    vocabulary = make()
    offer(vocabulary, "말", n=3)
    for wrong in (ints(1), ints(-1), ints(0, 2**60)):
        with pytest.raises(RefusedError, match="an id outside"):
            vocabulary.slots(wrong, "pull")


def test_candidates_are_bounded():
    vocabulary = make(min_count=10, max_candidates=100)
    for i in range(1000):
        read(vocabulary, f"말{i}")
        read(vocabulary, "자주")
    assert len(vocabulary.candidates) <= 101
    assert vocabulary.candidates["자주"] == 1000


def test_a_version_that_is_not_known_gives_everything():
    vocabulary = make(version=50)
    offer(vocabulary, "말", n=3)
    for since in (0, 49, 10**9):
        assert list(vocabulary.delta(since).words) == ["말"]
    assert list(vocabulary.delta(vocabulary.version).words) == []


operations = st.lists(
    st.tuples(st.sampled_from(["offer", "read", "sync"]), st.integers(0, 15), st.integers(1, 4)),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(operations)
def test_a_mirror_kept_by_deltas_is_the_vocabulary(operations):
    vocabulary = make(max_words=5)
    mirror: dict[str, int] = {}
    version, given_ids = 0, {}

    def sync() -> None:
        nonlocal version
        delta = vocabulary.delta(version)
        gone = set(delta.evicted.tolist())
        for word in [w for w, i in mirror.items() if i in gone]:
            del mirror[word]
        mirror.update(zip(delta.words, delta.ids.tolist(), strict=True))
        version = delta.version

    for kind, number, n in operations:
        word = f"말{number}"
        if kind == "offer":
            (got,) = offer(vocabulary, word, n=n).tolist()
            if got >= 0:
                assert given_ids.setdefault(got, word) == word, "an id was given to another word"
        elif kind == "read":
            read(vocabulary, word, n=n)
        else:
            sync()
        assert len(vocabulary) <= 5
        slots = vocabulary.slots(vocabulary.alive(), "test")
        assert len(set(slots.tolist())) == len(slots)
        assert vocabulary.rows <= 5
    sync()
    alive = vocabulary.alive().tolist()
    assert mirror == {vocabulary.words[i]: i for i in alive}
