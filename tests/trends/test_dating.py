"""Change dates from the whole series of a word's uses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage
from embedding.trends.dating import change_dates

CHANGED = {0: 2, 1: 4, 2: 1}
"""Number of the window from which word 0, 1 and 2 are used in another way."""


def test_each_word_has_the_date_at_which_its_use_changed(planted, tmp_path):
    rng = np.random.default_rng(0)
    store, parent, dim, n = SnapshotStore(str(tmp_path)), None, 24, 60
    true = rng.normal(size=(n, dim)) * 0.2
    for at, data in enumerate(planted.stream(planted.Plan(windows=6, fillers=100))):
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
    assert found == [labels[since] for since in CHANGED.values()]
    assert change_dates(snapshots[:1], words[:1]) == [None]
    assert change_dates(snapshots, ["없는말"]) == [None]
