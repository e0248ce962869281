"""Change dates from the whole series of a word's uses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage
from embedding.trends.dating import _profile, change_dates, word_change
from embedding.trends.replicas import UsedWords
from embedding.trends.usage import usage_shift

CHANGED = {0: 2, 1: 4, 2: 1}
"""Number of the window from which word 0, 1 and 2 are used in another way."""


def pairs_of(words: UsedWords) -> np.ndarray:
    """N of each word, over all sources and replicas."""
    return sum(words.pairs(source).sum(axis=1, dtype=float) for source in words.usage.by_source)


def test_each_word_has_the_date_at_which_its_use_changed(planted, tmp_path):
    rng = np.random.default_rng(0)
    store, parent, dim, n = SnapshotStore(str(tmp_path)), None, 24, 60
    true = rng.normal(size=(n, dim)) * 0.2
    for at, data in enumerate(planted.stream(planted.Plan(windows=6, fillers=100))):
        data = replace(data, counts=np.full(len(data.words), 100))
        means = np.repeat(true[:, None], 4, axis=1) + rng.normal(size=(n, 4, dim)) * 0.03
        for word, since in CHANGED.items():
            means[word] += 0.3 * (at >= since)
        pairs = np.full((n, 4), 30.0, dtype=np.float32)
        usage = Usage(np.arange(n), ["뉴스"] * n, np.full(n, 50), pairs, means.astype(np.float32))
        parent = store.publish(replace(data, parent=parent), usage).id
        words = data.words
    snapshots = [store.open(ref.id) for ref in store.list()]
    labels = [one.manifest.window.label for one in snapshots]
    found = change_dates(snapshots, [words[at] for at in CHANGED])
    assert [date.since for date in found] == [labels[since] for since in CHANGED.values()]
    assert all(date.low <= date.since <= date.high for date in found)
    assert change_dates(snapshots[:1], words[:1]) == [None]
    assert change_dates(snapshots, ["없는말"]) == [None]
    for at, since in CHANGED.items():
        change = word_change(store, words[at])
        assert (change.date.since, change.clear) == (labels[since], True)
    others = [word_change(store, words[at]) for at in range(3, 13)]
    assert sum(one.clear for one in others) <= 1
    assert all(one.p > 0 for one in others)
    assert word_change(store, "없는말").date is None


def test_running_sums_give_the_distance_of_the_whole_windows():
    """T over two sources, one of which lacks a window, a word and a replica."""
    rng = np.random.default_rng(3)
    n, dim, windows = 7, 5, []
    for at in range(5):
        sources = ["가"] * n + ([] if at == 2 else ["나"] * (n - 1))
        rows = np.concatenate([np.arange(n), np.arange(n - 1)])[: len(sources)]
        pairs = rng.uniform(1, 30, (len(rows), 4)).astype(np.float32)
        pairs[0, 1] = 0.0
        means = rng.normal(size=(len(rows), 4, dim)).astype(np.float32)
        usage = Usage(rows, sources, np.full(len(rows), 50), pairs, means)
        windows.append(UsedWords(usage, np.arange(n)))
    height = _profile(windows)[0]
    for at in range(1, 5):
        before, after = windows[:at], windows[at:]
        apart = usage_shift(before, after)
        pairs = [sum(pairs_of(window) for window in side) for side in (before, after)]
        expected = np.sign(apart) * apart**2 / (1 / pairs[0] + 1 / pairs[1])
        np.testing.assert_allclose(height[:, at - 1], expected, rtol=1e-9)
