"""How differently words are used: unbiased, by source, and as part of the ranking."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from embedding.errors import InputError
from embedding.snapshots.usage import Usage
from embedding.trends import combined as combining
from embedding.trends import permutation
from embedding.trends.combined import combined
from embedding.trends.config import TrendsConfig
from embedding.trends.noise import exposure
from embedding.trends.pair import pair_of
from embedding.trends.permutation import permuted
from embedding.trends.replicas import UsedWords
from embedding.trends.shift import shift
from embedding.trends.usage import usage_shift

DIM, REPLICAS = 12, 4


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
    found = usage_shift(used({"뉴스": true}, seed=2), used({"뉴스": moved}, seed=3))
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
    found = usage_shift(before, UsedWords(usage, np.arange(500)))
    squared = np.sign(found) * found**2
    assert abs(squared.mean()) < 4 * squared.std() / np.sqrt(500)


def test_a_word_that_no_source_used_at_both_times_is_not_compared():
    true = places(3, 1)
    before, after = used({"뉴스": true}), used({"뉴스": true[:2]})
    found = usage_shift(before, UsedWords(after.usage, np.arange(3)))
    assert np.isfinite(found[:2]).all()
    assert np.isnan(found[2])
    other = used({"글판": true})
    assert np.isnan(usage_shift(before, other)).all()


def test_one_replica_alone_does_not_say_how_sure_it_is():
    true = places(2, 1)
    before, after = used({"뉴스": true}), used({"뉴스": true})
    after.usage.pairs[0, 1:] = 0.0
    found = usage_shift(before, after)
    assert np.isnan(found[0])
    assert np.isfinite(found[1])


@pytest.fixture
def told(pair):
    """The planted pair, of a model that went on, with uses of which one word's changed."""
    true = places(len(pair), 1)
    moved = true.copy()
    moved[pair.index["도배"]] += 0.3
    before, after = (used({"뉴스": each}, seed=at) for at, each in enumerate((true, moved)))
    return replace(pair, after=pair.before, used_before=before, used_after=after)


def test_the_ranking_hears_of_a_change_that_the_vectors_do_not_show(told):
    rows = np.arange(len(told), dtype=np.int64)
    config = TrendsConfig()
    exposures = exposure(told.seen_before, told.seen_after)
    usage = permuted(told, rows, exposures, config.band_words).z
    assert told.words[int(combined(usage, told, rows, exposures, config).argmax())] == "도배"
    values = shift(told, rows, config, "usage")
    assert told.words[int(values.argmax())] == "도배"


def test_a_ranking_is_steadied_and_what_is_called_is_not(told, monkeypatch):
    """p stays what permuting says; z leans on words of like frequency."""
    rows, exposures = np.arange(len(told), dtype=np.int64), np.zeros(len(told))
    found = permuted(told, rows, exposures, 400)
    monkeypatch.setattr(permutation, "steadied", lambda squared, *_: np.cbrt(squared))
    other = permuted(told, rows, exposures, 400)
    assert np.array_equal(found.p, other.p)
    assert not np.allclose(found.z, other.z)
    monkeypatch.undo()
    monkeypatch.setattr(permutation, "RANKED", permutation.PRIOR)
    other = permuted(told, rows, exposures, 400)
    assert np.array_equal(found.p, other.p)
    assert not np.allclose(found.z, other.z)


def test_the_model_reorders_only_what_texts_read_again_say_too(told, monkeypatch):
    """By its noise alone two trainings on the same text would name other words."""
    rows = np.arange(len(told), dtype=np.int64)
    exposures = np.zeros(len(told))
    usage = np.linspace(-2.0, 6.0, len(told))
    usage[3] = 0.0
    noise = np.random.default_rng(1).normal(0, 3.0, len(told))
    monkeypatch.setattr(combining, "noise_floor", lambda *_: SimpleNamespace(z=lambda *_: noise))
    plain = combined(usage, told, rows, exposures, TrendsConfig())
    again = combined(usage, replace(told, reread=True), rows, exposures, TrendsConfig())
    assert np.allclose(plain, (usage + 0.5 * noise) / np.hypot(1.0, 0.5))
    sure, unseen = usage >= combining.SURE, usage < 0.0
    assert np.allclose(again[sure], plain[sure])
    assert np.allclose(again[unseen], usage[unseen])
    assert again[3] == pytest.approx(plain[3]), "a word too rare for usage is judged by the model"
    unsure = (usage > 0.0) & (usage < combining.SEEN)
    assert unsure.any()
    assert np.allclose(again[unsure], usage[unsure])
    at = int(np.argmin(np.abs(usage - combining.SURE / 2)))
    grown = (usage[at] - combining.SEEN) / (combining.SURE - combining.SEEN)
    weight = combining.MODEL * grown
    assert again[at] == pytest.approx((usage[at] + weight * noise[at]) / np.hypot(1.0, weight))


def test_what_was_read_again_is_compared_whatever_the_model_did(told):
    turned = replace(told, after=told.after[:, ::-1].copy(), reread=True)
    assert turned.usage_compares
    values = shift(turned, np.arange(len(told)), TrendsConfig(), "usage")
    assert told.words[int(values.argmax())] == "도배"


def test_the_texts_that_a_window_read_again_stand_for_the_windows_before(store):
    one, other = (store.open(ref.id) for ref in store.list()[-2:])
    use, past = (used({"뉴스": places(3, at)}, seed=at).usage for at in (1, 2))
    one.__dict__["usage"] = other.__dict__["usage"] = use
    plain = pair_of(one, other)
    assert not plain.reread
    other.__dict__["usage"] = replace(use, reread=(past, replace(past, pairs=past.pairs + 1)))
    pair = pair_of(one, other)
    assert pair.reread
    held = pair.rows(other.words[:3])
    pairs = [w.take(held).pairs("뉴스") for w in (pair.used_before, *pair.used_past)]
    assert np.array_equal(pairs[0], past.pairs.astype(float))
    assert np.array_equal(pairs[1], (past.pairs + 1).astype(float))
    one.__dict__["usage"] = past
    other.__dict__["usage"] = replace(use, reread=(past,))
    alone = pair_of(one, other, [one])
    assert alone.reread
    assert alone.used_past == (), "what was read in other tables does not stand beside it"


def test_two_models_are_not_compared_by_usage(told):
    turned = replace(told, after=told.after[:, ::-1].copy())
    assert told.usage_compares
    assert not turned.usage_compares
    with pytest.raises(InputError, match="one model that went on"):
        shift(turned, np.arange(3), TrendsConfig(), "usage")
