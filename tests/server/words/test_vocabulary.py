"""Admission, running counts, eviction, versions."""

import numpy as np
import pytest

from embedding.kernel.errors import RefusedError
from embedding.server.words.vocabulary import Vocabulary


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
    assert vocabulary.candidates.of("글") / vocabulary.decay.weight == pytest.approx(2.0)


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


def test_candidates_are_bounded_and_fall_short_by_no_more_than_they_say():
    vocabulary = make(min_count=10, max_candidates=100)
    for i in range(1000):
        read(vocabulary, f"말{i}")
        read(vocabulary, "자주")
        assert len(vocabulary.candidates) <= 100
    shortfall = vocabulary.candidates.shortfall
    assert 0 < shortfall <= 2000 / (0.95 * 100)
    assert 1000 - shortfall <= vocabulary.candidates.of("자주") <= 1000


def test_a_frequent_new_word_is_admitted_among_any_number_of_rare_ones():
    vocabulary = make(min_count=5, max_candidates=200)
    for i in range(5000):
        read(vocabulary, f"말{i}")
        if i % 50 == 0:
            read(vocabulary, "새말")
    assert offer(vocabulary, "새말").tolist() == [0]


def test_no_word_is_admitted_before_it_was_read_often_enough():
    vocabulary = make(min_count=5, max_candidates=3)
    rng = np.random.default_rng(1)
    seen: dict[str, int] = {}
    for number in rng.integers(0, 30, 2000).tolist():
        word = f"말{number}"
        seen[word] = seen.get(word, 0) + 1
        if offer(vocabulary, word).tolist() != [-1]:
            assert seen[word] >= 5
        read(vocabulary, word)


def test_a_version_that_is_not_known_gives_everything():
    vocabulary = make(version=50)
    offer(vocabulary, "말", n=3)
    for since in (0, 49, 10**9):
        assert list(vocabulary.delta(since).words) == ["말"]
    assert list(vocabulary.delta(vocabulary.version).words) == []


def test_a_version_older_than_the_history_of_evictions_gives_everything():
    vocabulary = make(min_count=1, max_words=100)
    offer(vocabulary, *[f"말{i}" for i in range(100)])
    start = vocabulary.version
    for i in range(100, 1000):
        offer(vocabulary, f"말{i}")
        assert len(vocabulary.evictions) <= 64
    assert len(vocabulary.delta(start).words) == len(vocabulary)
    assert len(vocabulary.delta(start).evicted) == 0
    recent = vocabulary.delta(vocabulary.version - 10)
    assert len(recent.words) == 10
    assert 0 < len(recent.evicted) <= 20


def test_a_count_for_an_evicted_id_goes_to_its_word_while_it_is_remembered():
    vocabulary = make(min_count=3, max_words=1)
    offer(vocabulary, "가", n=3)
    offer(vocabulary, "나", n=3)
    late = (ints(0), ints(2), np.zeros(1), [], ints(), np.zeros(0), 2)
    assert vocabulary.count(*late) == 0
    assert vocabulary.candidates.of("가") == 2.0
    assert len(vocabulary.candidates) == 1
    vocabulary.evictions.limit = 0
    offer(vocabulary, "다", n=3)
    assert vocabulary.names(ints(2, 1)) == ["다", ""]
    assert vocabulary.count(*late) == 2, "the word is forgotten, so its occurrences are dropped"


def test_a_count_for_a_word_that_got_a_row_meanwhile_is_counted_there():
    vocabulary = make()
    offer(vocabulary, "말", n=3)
    read(vocabulary, "말", n=4)
    assert vocabulary.counts(ints(0)).tolist() == [4.0]
    assert not vocabulary.candidates


def test_new_words_are_spared_until_their_first_push_can_have_come():
    vocabulary = make(min_count=1, max_words=40)
    for i in range(40):
        offer(vocabulary, f"말{i}")
        read(vocabulary, f"말{i}", n=2)
    for i in range(40, 44):
        offer(vocabulary, f"말{i}")
    found = vocabulary.ids([f"말{i}" for i in range(40, 44)])
    assert (found >= 0).all(), "uncounted as they are, older words went first"
    rare = make(min_count=1, max_words=40)
    offer(rare, *[f"말{i}" for i in range(40)])
    assert len(rare.victims(1)) == 1, "no more than needed of those that are spared"


def test_a_word_unread_for_long_gives_way_to_a_word_of_today():
    vocabulary = make(min_count=1, max_words=2, half_life_tokens=100.0)
    offer(vocabulary, "옛말", "늘")
    read(vocabulary, "옛말", n=100)
    for _ in range(20):
        read(vocabulary, "늘", n=2, tokens=100)
    offer(vocabulary, "새말")
    assert vocabulary.ids(["옛말", "늘", "새말"]).tolist() == [-1, 1, 2]


def test_a_closed_vocabulary_keeps_the_counts_it_was_closed_with():
    vocabulary = make(min_count=1)
    offer(vocabulary, "말", "글")
    vocabulary.close(["말", "글"], np.array([30, 20]))
    none = np.empty(0, dtype=np.int64)
    at = np.array([7.0])
    dropped = vocabulary.count(ints(1), np.array([5]), at, ["새말"], np.array([9]), at, 14)
    assert dropped == 0
    assert vocabulary.counts(ints(0, 1)).tolist() == [30.0, 20.0]
    assert vocabulary.last_seen(ints(1)).tolist() == [7.0]
    assert offer(vocabulary, "새말", n=50).tolist() == [-1]
    assert len(none) == len(vocabulary.candidates) == 0
