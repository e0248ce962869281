"""A published synthetic stream, shared by the room's tests; nobody changes it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from embedding.snapshots.store import SnapshotStore
from embedding.trends.pair import Pair, pair_of


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("planted", Path(__file__).with_name("planted.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def planted() -> ModuleType:
    return _load()


@pytest.fixture(scope="session")
def store(planted, tmp_path_factory) -> SnapshotStore:
    return planted.make_store(str(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="session")
def pair(store) -> Pair:
    refs = store.list()
    return pair_of(store.open(refs[-2].id), store.open(refs[-1].id))
