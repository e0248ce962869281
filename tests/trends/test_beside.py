"""Words that stand beside a word, found again where they were planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from embedding.trends.beside import LEAST_TIMES, UsualContexts, beside


@pytest.fixture(scope="module")
def snapshot(planted, tmp_path_factory) -> Snapshot:
    """A window in which three words are foreseen beside 코로나, one everywhere."""
    plan = planted.Plan(windows=1, fillers=300, moved={"코로나": ("영화", "바이러스", 9)})
    (data,) = planted.stream(plan)
    at = {word: row for row, word in enumerate(data.words)}
    vectors, contexts = data.vectors.copy(), np.zeros_like(data.contexts)
    vectors[:, 0] = 0.0
    vectors[at["코로나"]] = 0.0
    vectors[at["코로나"], 0] = 2.0
    names = [word for word in data.words if word != "코로나"]
    for word in names[:3]:
        contexts[at[word], 0] = 2.0
    contexts[at[names[3]]] = 0.0
    counts = np.full(len(data.words), 100)
    counts[at[names[3]]] = 100_000
    data = replace(data, vectors=vectors, contexts=contexts, counts=counts)
    store = SnapshotStore(str(tmp_path_factory.mktemp("beside")))
    return store.open(store.publish(data).id)


def test_what_stands_beside_a_word_is_found_and_what_stands_everywhere_is_not(snapshot) -> None:
    names = [word for word in snapshot.words if word != "코로나"]
    found = beside(snapshot, "코로나", 10)
    assert {one.word for one in found} == set(names[:3])
    assert all(one.times >= LEAST_TIMES for one in found)
    assert beside(snapshot, "코로나", 2) == found[:2]
    assert beside(snapshot, "코로나", 10, UsualContexts.of(snapshot)) == found


def test_a_word_that_is_not_there_has_nothing_beside_it(snapshot) -> None:
    assert beside(snapshot, "없는말", 10) == []


def test_shares_of_contexts_add_up(snapshot) -> None:
    assert UsualContexts.of(snapshot).usual.sum() == pytest.approx(1.0)
