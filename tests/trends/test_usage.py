"""How differently words are used, as part of the ranking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embedding.kernel.errors import InputError
from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.pair import pair_of
from embedding.trends.permutation import between_times
from embedding.trends.replicas import UsedWords
from embedding.trends.shift import shift

DIM, REPLICAS = 12, 8


def used(
    means: dict[str, np.ndarray], spread: float = 0.3, pairs: float = 40.0, seed: int = 0
) -> UsedWords:
    """Words 0, 1, … with these true means [n, DIM] by source, seen with noise in replicas."""
    rng = np.random.default_rng(seed)
    rows, sources, weights, seen = [], [], [], []
    for source, true in sorted(means.items()):
        n = len(true)
        share = rng.uniform(0.5, 1.5, (n, REPLICAS)) * pairs
        noise = rng.normal(size=(n, REPLICAS, DIM)) * spread / np.sqrt(share)[..., None]
        rows += range(n)
        sources += [source] * n
        weights.append(share)
        seen.append(true[:, None] + noise)
    usage = Usage(
        np.array(rows),
        sources,
        np.full(len(rows), 20),
        np.concatenate(weights).astype(np.float32),
        np.concatenate(seen).astype(np.float32),
    )
    n = max(len(true) for true in means.values())
    return UsedWords(usage, np.arange(n))


def places(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, DIM)) * 0.2


@pytest.fixture
def told(pair):
    """The planted pair, with uses of which one word's changed."""
    true = places(len(pair), 1)
    moved = true.copy()
    moved[pair.words.index("도배")] += 0.3
    before, after = (used({"뉴스": each}, seed=at) for at, each in enumerate((true, moved)))
    return replace(pair, used_before=(before,), used_after=after)


def test_a_change_is_seen_that_the_vectors_do_not_show(told):
    rows = np.arange(len(told), dtype=np.int64)
    values = shift(told, rows, TrendsConfig(), "usage")
    assert told.words[int(values.argmax())] == "도배"
    before, after = told.used(rows)
    assert told.words[int(between_times(before, after).z.argmax())] == "도배"


def test_the_later_snapshot_says_how_words_were_used_at_both_times(store):
    one, other = (store.open(ref.id) for ref in store.list()[-2:])
    use, past = (used({"뉴스": places(3, at)}, seed=at).usage for at in (1, 2))
    one.__dict__["usage"] = other.__dict__["usage"] = use
    assert not pair_of(one, other).usage_compares, "another window's sums lie in another space"
    other.__dict__["usage"] = replace(use, reread=(use, past, replace(past, pairs=past.pairs + 1)))
    pair = pair_of(one, other)
    assert pair.usage_compares
    before, _ = pair.used(np.array([pair.words.index(word) for word in other.words[:3]]))
    pairs = [window.pairs("뉴스") for window in before]
    assert np.array_equal(pairs[0], past.pairs.astype(float))
    assert np.array_equal(pairs[1], (past.pairs + 1).astype(float))


def test_sums_of_another_meaning_are_not_compared(store):
    """Snapshots of before units of documents have four replicas."""
    one, other = (store.open(ref.id) for ref in store.list()[-2:])
    use = used({"뉴스": places(3, 1)}).usage
    few = replace(use, pairs=use.pairs[:, :4], means=use.means[:, :4])
    other.__dict__["usage"] = replace(few, reread=(few, few))
    pair = pair_of(one, other)
    assert not pair.usage_compares
    with pytest.raises(InputError, match=r"server\.usage"):
        shift(pair, np.arange(3), TrendsConfig(), "usage")


def test_windows_that_do_not_follow_each_other_are_not_compared_by_usage(store):
    first, *_, last = (store.open(ref.id) for ref in store.list())
    use = used({"뉴스": places(3, 1)}).usage
    last.__dict__["usage"] = replace(use, reread=(use,))
    assert not pair_of(first, last).usage_compares
