"""Which words stood around words: added up, thinned without bias, bounded."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from embedding.models.contextbags import MAX_CONTEXTS, ContextBag, ContextBags, added_up


def bags(*each: tuple[list[int], list[float]], mentions: int = 1) -> ContextBag:
    return ContextBag(
        np.array([len(contexts) for contexts, _ in each], np.int64),
        np.array([id_ for contexts, _ in each for id_ in contexts], np.int32),
        np.array([weight for _, weights in each for weight in weights], np.float32),
        np.full(len(each), mentions),
    )


def one(held: ContextBags, key) -> dict[int, float]:
    found = held.of([key])
    return dict(zip(found.contexts.tolist(), found.weights.tolist(), strict=True))


def test_equal_contexts_of_a_word_are_added_up():
    owners, contexts = np.array([1, 0, 1, 1, 0]), np.array([3, 7, 9, 3, 7])
    found = added_up(owners, contexts, np.array([0.25, 1, 1, 0.25, 2], np.float16), np.arange(3))
    assert found.sizes.tolist() == [1, 2, 0]
    assert found.contexts.tolist() == [7, 3, 9]
    assert found.weights.tolist() == [3.0, 0.5, 1.0]
    assert found.mentions.tolist() == [0, 1, 2]


def test_some_words_of_many():
    found = bags(([3, 4], [1, 2]), ([], []), ([9], [0.5])).of(np.array([True, True, False]))
    assert (found.sizes.tolist(), found.contexts.tolist()) == ([2, 0], [3, 4])


def test_what_is_added_many_times_takes_no_more_room():
    held: ContextBags[str] = ContextBags(5)
    for _ in range(1000):
        held.add(["말"], bags(([1, 2, 3], [1.0, 0.5, 0.25])))
    assert sum(len(level.codes) for level in held._levels) < 100
    assert one(held, "말") == {1: 1000.0, 2: 500.0, 3: 250.0}
    assert held.mentions(["말", "딴말"]).tolist() == [1000, 0]


@pytest.mark.parametrize("each", [4, 30])
def test_many_words_are_what_a_plain_count_of_them_is(each):
    held: ContextBags[int] = ContextBags(40)
    plain: dict[int, Counter] = {}
    rng = np.random.default_rng(3)
    for _ in range(300):
        keys = rng.choice(60, each, replace=False).tolist()
        parts = [(np.sort(rng.choice(90, 5, replace=False)).tolist(), [0.5] * 5) for _ in keys]
        held.add(keys, bags(*parts))
        for key, (contexts, weights) in zip(keys, parts, strict=True):
            plain[key] = plain.pop(key, Counter()) + Counter(
                dict(zip(contexts, weights, strict=True))
            )
        for key in list(plain)[: max(0, len(plain) - 40)]:
            del plain[key]
        gone = int(rng.integers(60))
        held.forget([gone])
        plain.pop(gone, None)
    assert held.keys() == list(plain)
    for key, expected in plain.items():
        assert one(held, key) == expected
    whole = held.of([*held.keys(), 1000])
    assert whole.sizes.tolist() == [*(len(each) for each in plain.values()), 0]
    assert set(held.contexts().tolist()) >= set().union(*plain.values())
    assert held._next <= 200, "places of forgotten words are taken again"


def test_too_many_contexts_are_halved_and_shares_stay_true():
    held: ContextBags[int] = ContextBags(5)
    for at in range(60):
        rare = (100 + 50 * at + np.arange(50)).tolist()
        held.add([1], bags(([1, *rare], [5.0, *[0.2] * 50]), mentions=5))
    found = one(held, 1)
    assert len(found) <= MAX_CONTEXTS
    assert held.mentions([1])[0] <= 150
    assert abs(found[1] / sum(found.values()) - 1 / 3) < 0.1, "5 of 15"


def test_halving_keeps_what_contexts_weigh_in_the_mean():
    held: ContextBags[int] = ContextBags(5, most=10_000)
    weights = np.random.default_rng(2).choice([0.2, 0.4, 3.0], 4000)
    held.add([1], bags((list(range(4000)), weights.tolist()), mentions=1000), fresh=999)
    assert abs(sum(one(held, 1).values()) / weights.sum() - 0.5) < 0.02
    assert held.mentions([1]).tolist() == [500]


def test_a_fresh_bag_is_halved_at_so_many_mentions():
    held: ContextBags[int] = ContextBags(5)
    held.add([1], bags(([4], [8.0]), mentions=100), fresh=100)
    assert one(held, 1) == {4: 8.0}
    held.add([1], bags(([5], [8.0]), mentions=2), fresh=100)
    assert one(held, 1) == {4: 4.0, 5: 4.0}
    assert held.mentions([1]).tolist() == [51]


def test_the_latest_words_stay_and_what_is_forgotten_is_gone():
    held: ContextBags[int] = ContextBags(2)
    for key in (1, 2, 1, 3):
        held.add([key], bags(([key], [1.0])))
    assert held.keys() == [1, 3]
    held.forget([1, 8])
    assert held.keys() == [3]
    held.add([1], bags(([9], [1.0])))
    assert one(held, 1) == {9: 1.0}, "nothing of before"


def test_what_was_given_is_not_changed_by_what_comes_later():
    held: ContextBags[int] = ContextBags(2)
    held.add([1], bags(([4], [8.0]), mentions=100))
    before = held.of([1])
    held.add([1], bags(([4], [8.0]), mentions=100), fresh=10)
    assert before.weights.tolist() == [8.0]


def test_a_copy_stays_what_it_was():
    held: ContextBags[int] = ContextBags(2)
    held.add([1, 2], bags(([4], [8.0]), ([5], [2.0]), mentions=100))
    copy = held.copied()
    held.add([1], bags(([4], [8.0]), mentions=100), fresh=10)
    held.forget([2])
    assert copy.keys() == [1, 2]
    assert one(copy, 1) == {4: 8.0}
    assert one(copy, 2) == {5: 2.0}
    assert copy.mentions([1, 2]).tolist() == [100, 100]
