"""Snapshots of a tiny Korean vocabulary."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import numpy as np
import pytest

from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts
from embedding.snapshots.store import SnapshotStore

WORDS = ("코로나", "마스크", "일본", "조국", "확진자", "petition", "🙂", "방역")

MakeData = Callable[..., SnapshotData]


def build(
    month: int = 2, words: tuple[str, ...] = WORDS, dim: int = 6, seed: int = 1, **changes: object
) -> SnapshotData:
    n = len(words)
    random = np.random.default_rng(seed)
    window = Window.holding(datetime(2020, month, 3, tzinfo=UTC), WindowUnit.MONTH)
    start = int(window.start.timestamp())
    data = SnapshotData(
        window=window,
        words=words,
        ids=np.arange(n, dtype=np.int64) * 3 + 1,
        counts=np.arange(n, 0, -1, dtype=np.int64) * 10,
        last_seen=np.full(n, start + 60.0),
        vectors=random.normal(size=(n, dim)).astype(np.float32),
        contexts=random.normal(size=(n, dim)).astype(np.float32),
        by_source=WordCounts(
            words=[*words, *words],
            sources=["청원"] * n + ["뉴스"] * n,
            windows=np.full(2 * n, start, np.int64),
            counts=np.arange(2 * n, dtype=np.int64) + 1,
            documents=np.ones(2 * n, np.int64),
        ),
        tokens={"청원": 36, "뉴스": 100},
        documents={"청원": 3, "뉴스": 5},
        quality={"nll": 2.5, "nll.뉴스": 2.25, "pip": 0.75},
        config={"model": {"name": "sgns", "dim": dim}},
        config_digest="c" * 64,
        tokenizer_digest="t" * 64,
    )
    return replace(data, **changes)


@pytest.fixture
def make() -> MakeData:
    return build


@pytest.fixture
def folder(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots")


@pytest.fixture(params=["folder", "remote"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    """The same contract over a local folder and over a file system that cannot rename."""
    if request.param == "folder":
        yield SnapshotStore(tmp_path / "snapshots")
        return
    root = f"/{uuid.uuid4().hex}"
    yield SnapshotStore(f"memory:/{root}", cache=tmp_path / "cache")
    memory = fsspec.filesystem("memory")
    if memory.exists(root):
        memory.rm(root, recursive=True)
