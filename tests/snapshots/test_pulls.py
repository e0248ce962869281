"""Which contexts pulled words, as part of a snapshot: read back as it was, checked, optional."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embedding.kernel.errors import SnapshotError
from embedding.server.snapshotting.snapshotter import pulls_of
from embedding.server.words.shifts import PullingContexts
from embedding.snapshots.pulls import ContextPulls
from embedding.snapshots.store import SnapshotStore


def pulls() -> ContextPulls:
    figures = (
        np.array(each, np.float32) for each in ([0.1, 0, 0.2], [0, 0.3, 0.4], [0.6, 0.5, -1])
    )
    return ContextPulls(np.array([1, 1, 3]), np.array([0, 4, 2]), *figures)


def test_it_comes_back_by_word(make, tmp_path):
    store = SnapshotStore(tmp_path)
    back = store.open(store.publish(make(), None, pulls()).id).pulls
    for name in ("words", "contexts", "before", "after", "share"):
        np.testing.assert_array_equal(getattr(back, name), getattr(pulls(), name))
    assert [list(back.of(row)) for row in (0, 1, 2, 3)] == [[], [0, 1], [], [2]]


def test_a_snapshot_without_it_says_nothing(make, tmp_path):
    store = SnapshotStore(tmp_path)
    assert store.open(store.publish(make()).id).pulls is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"contexts": np.array([0, 4, 10_000])},
        {"words": np.array([3, 1, 1])},
        {"share": np.array([np.nan, 0, 0], np.float32)},
        {"words": np.array([1, 1])},
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_published(make, tmp_path, wrong):
    store = SnapshotStore(tmp_path)
    with pytest.raises((SnapshotError, ValueError)):
        store.publish(make(), None, replace(pulls(), **wrong))
    assert store.list() == []


def test_ids_become_rows_and_words_that_are_gone_are_left_out():
    figures = np.arange(12, dtype=np.float32).reshape(4, 3)
    pulled = PullingContexts(np.array([5, 5, 8, 9]), np.array([8, 9, 5, 77]), figures)
    found = pulls_of(pulled, np.array([9, 8, 5]))
    assert found.words.tolist() == [1, 2, 2]
    assert found.contexts.tolist() == [2, 1, 0]
    assert found.before.tolist() == [6.0, 0.0, 3.0]
    assert found.share.tolist() == [8.0, 2.0, 5.0]
