"""A snapshot may hold words that its fastest source read ahead, from the window after it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from embedding.snapshots.store import SnapshotStore
from embedding.trends.report import build_report

BORN = "신천지"


def with_word(data, word: str, count: int):
    """The snapshot with one more row, and nothing counted in its window."""
    return dataclasses.replace(
        data,
        words=[*data.words, word],
        ids=np.append(data.ids, data.ids.max() + 1),
        counts=np.append(data.counts, count),
        last_seen=np.append(data.last_seen, data.last_seen[-1]),
        vectors=np.vstack([data.vectors, data.vectors[:1]]),
        contexts=np.vstack([data.contexts, data.contexts[:1]]),
    )


@pytest.mark.parametrize(
    ("back", "count", "found"), [(1, 3, True), (1, 1_000_000, True), (None, 1_000_000, False)]
)
def test_a_word_read_ahead_is_still_born(planted, tmp_path, back, count: int, found: bool) -> None:
    """However late the window before was cut; but not one of the oldest snapshot, which no window
    accounts for.
    """
    stream = planted.stream(planted.Plan())
    first = next(i for i, data in enumerate(stream) if BORN in data.words)
    assert first > 1
    at = 0 if back is None else first - back
    stream[at] = with_word(stream[at], BORN, count)
    store = SnapshotStore(str(tmp_path))
    parent = None
    for data in stream[: first + 1]:
        parent = store.publish(dataclasses.replace(data, parent=parent)).id
    report = build_report(store, parent)
    assert (BORN in [row.word for row in report.born]) is found
    assert (BORN in [row.word for row in report.risen]) is not found
