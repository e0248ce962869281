"""Which words stood around words: added up, thinned without bias, bounded."""

from __future__ import annotations

import numpy as np

from embedding.models.contextbags import MOST, Bag, ContextBags, packed, unpacked


def bag(contexts, weights, mentions: int = 1) -> Bag:
    return Bag(np.array(contexts, np.int64), np.array(weights, np.float32), mentions, 0)


def test_equal_contexts_are_added_up():
    both = bag([7, 3], [1.0, 0.5]).joined(bag([3, 9, 3], [0.25, 1.0, 0.25], 2)).distinct()
    assert both.contexts.tolist() == [3, 7, 9]
    assert both.weights.tolist() == [1.0, 1.0, 1.0]
    assert both.mentions == 3


def test_what_is_added_many_times_takes_no_more_room():
    bags: ContextBags[str] = ContextBags(5)
    for _ in range(1000):
        bags.add(["말"], [bag([1, 2, 3], [1.0, 0.5, 0.25])])
    held = bags.get("말")
    assert len(held.contexts) < 100
    assert held.distinct().weights.tolist() == [1000.0, 500.0, 250.0]


def test_too_many_contexts_are_halved_and_shares_stay_true():
    rng = np.random.default_rng(2)
    bags: ContextBags[int] = ContextBags(5)
    for at in range(60):
        rare = 100 + 50 * at + np.arange(50)
        bags.add([1], [bag([1, *rare], [5.0, *np.full(50, 0.2)], 5)])
    held = bags.get(1).distinct()
    assert len(held.contexts) <= MOST
    assert held.mentions <= 150
    often = held.weights[held.contexts == 1].sum() / held.weights.sum()
    assert abs(often - 1 / 3) < 0.1, "5 of 15"
    many = bag(np.arange(4000), rng.choice([0.2, 0.4, 3.0], 4000), 1000)
    assert abs(many.halved().weights.sum() / many.weights.sum() - 0.5) < 0.02


def test_a_fresh_bag_is_halved_at_so_many_mentions():
    bags: ContextBags[int] = ContextBags(5)
    bags.add([1], [bag([4], [8.0], 100)], fresh=100)
    assert bags.get(1).weights.tolist() == [8.0]
    bags.add([1], [bag([5], [8.0], 2)], fresh=100)
    assert bags.get(1).weights.tolist() == [4.0, 4.0]
    assert bags.get(1).mentions == 51


def test_the_latest_words_stay_and_what_is_taken_is_gone():
    bags: ContextBags[int] = ContextBags(2)
    for key in (1, 2, 1, 3):
        bags.add([key], [bag([key], [1.0])])
    assert bags.keys() == [1, 3]
    assert set(bags.pop([1, 8])) == {1}
    assert bags.keys() == [3]


def test_columns_and_back():
    bags = [bag([3, 4], [1.0, 2.0], 2), bag([], [], 1), bag([9], [0.5], 7)]
    columns = packed(bags)
    assert columns.sizes.tolist() == [2, 0, 1]
    assert columns.contexts.tolist() == [3, 4, 9]
    for one, other in zip(bags, unpacked(columns), strict=True):
        assert one.contexts.tolist() == other.contexts.tolist()
        assert one.weights.tolist() == other.weights.tolist()
        assert one.mentions == other.mentions
    assert not packed([]).contexts.size
