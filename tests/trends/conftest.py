"""A published synthetic stream, shared by the room's tests; nobody changes it."""

from __future__ import annotations

import pytest

from embedding.snapshots.store import SnapshotStore
from embedding.trends.pair import SnapshotPair, pair_of


@pytest.fixture(scope="session")
def store(planted, tmp_path_factory) -> SnapshotStore:
    return planted.make_store(str(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="session")
def pair(store) -> SnapshotPair:
    refs = store.list()
    return pair_of(store.open(refs[-2].id), store.open(refs[-1].id))
