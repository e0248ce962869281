"""How differently words are used: unbiased, by source, and as part of the ranking."""

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
from embedding.trends.usage import usage_shift

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


def test_words_that_did_not_change_have_a_shift_around_nought_and_others_their_true_one():
    true = places(2000, 1)
    moved = true.copy()
    moved[:200] += 0.1 / np.sqrt(DIM)
    found = usage_shift([used({"뉴스": true}, seed=2)], [used({"뉴스": moved}, seed=3)])
    squared = np.sign(found) * found**2
    still = squared[200:]
    assert abs(still.mean()) < 4 * still.std() / np.sqrt(len(still))
    assert 0.3 < (still < 0).mean() < 0.7
    assert squared[:200].mean() == pytest.approx(0.01, rel=0.25)


def test_another_mix_of_sources_is_no_shift():
    news, board = places(500, 1), places(500, 2)
    before = used({"뉴스": news, "글판": board}, seed=3)
    mixed = used({"뉴스": news}, pairs=400.0, seed=4), used({"글판": board}, pairs=4.0, seed=5)
    usage = Usage(
        np.concatenate([m.usage.rows for m in mixed]),
        [s for m in mixed for s in m.usage.sources],
        np.concatenate([m.usage.mentions for m in mixed]),
        np.concatenate([m.usage.pairs for m in mixed]),
        np.concatenate([m.usage.means for m in mixed]),
    )
    # by source, as a snapshot has them
    order = np.argsort(np.array(usage.sources), kind="stable")
    usage = Usage(
        usage.rows[order],
        [usage.sources[i] for i in order.tolist()],
        usage.mentions[order],
        usage.pairs[order],
        usage.means[order],
    )
    found = usage_shift([before], [UsedWords(usage, np.arange(500))])
    squared = np.sign(found) * found**2
    assert abs(squared.mean()) < 4 * squared.std() / np.sqrt(500)


def test_a_word_that_no_source_used_at_both_times_is_not_compared():
    true = places(3, 1)
    before, after = used({"뉴스": true}), used({"뉴스": true[:2]})
    found = usage_shift([before], [UsedWords(after.usage, np.arange(3))])
    assert np.isfinite(found[:2]).all()
    assert np.isnan(found[2])
    other = used({"글판": true})
    assert np.isnan(usage_shift([before], [other])).all()


def test_one_replica_alone_does_not_say_how_sure_it_is():
    true = places(2, 1)
    before, after = used({"뉴스": true}), used({"뉴스": true})
    after.usage.pairs[0, 1:] = 0.0
    found = usage_shift([before], [after])
    assert np.isnan(found[0])
    assert np.isfinite(found[1])


@pytest.fixture
def told(pair):
    """The planted pair, with uses of which one word's changed."""
    true = places(len(pair), 1)
    moved = true.copy()
    moved[pair.index["도배"]] += 0.3
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
    before, _ = pair.used(pair.rows(other.words[:3]))
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
