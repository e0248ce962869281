"""Snapshots with planted geometry, and gold files for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts
from embedding.snapshots.store import SnapshotStore

WORDS = ("왕", "여왕", "남자", "여자", "아들", "딸", "코로나", "마스크")


def planted() -> np.ndarray:
    """Pairs 왕:여왕 = 남자:여자 = 아들:딸 differ by one direction."""
    female = np.eye(8, dtype=np.float32)[7]
    rows = np.zeros((8, 8), np.float32)
    for at in range(0, 6, 2):
        rows[at, at] = 1.0
        rows[at + 1] = rows[at] + female
    rows[6, 5] = 1.0
    rows[7, 5], rows[7, 6] = 0.8, 0.6
    return rows


def build(month: int = 2, nll: float = 2.5, parent: str | None = None) -> SnapshotData:
    window = Window.holding(datetime(2020, month, 3, tzinfo=UTC), WindowUnit.MONTH)
    start = int(window.start.timestamp())
    n = len(WORDS)
    vectors = planted()
    return SnapshotData(
        window=window,
        words=WORDS,
        ids=np.arange(n, dtype=np.int64),
        counts=np.arange(n, 0, -1, dtype=np.int64) * 100,
        last_seen=np.where(np.arange(n) < 6, start + 5.0, start - 5.0),
        vectors=vectors,
        contexts=vectors[::-1].copy(),
        by_source=WordCounts(
            list(WORDS), ["청원"] * n, np.full(n, start), np.arange(n) + 1, np.ones(n, np.int64)
        ),
        tokens={"청원": 30, "뉴스": 70},
        documents={"청원": 3, "뉴스": 7},
        quality={"nll": nll, "nll.청원": nll + 0.1, "nll.뉴스": nll - 0.1, "pip": 0.5},
        parent=parent,
        config={
            "model": {"model": "sgns", "dim": 8, "window": 5},
            "sync": {"policy": "ssp"},
            "server": {"corpus_digest": "d" * 64},
            "compression": "onebit",
            "topology": "ps",
            "tokenizer": "kiwi",
            "nodes": 2,
        },
        config_digest="c" * 64,
        tokenizer_digest="t" * 64,
    )


@pytest.fixture
def make() -> Callable[..., SnapshotData]:
    return build


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots")


@pytest.fixture
def gold(tmp_path: Path) -> tuple[Path, Path]:
    pairs = tmp_path / "ws_ko.tsv"
    pairs.write_text(
        "# 짝\n왕\t여왕\t8.0\n코로나\t마스크\t9.0\n왕\t코로나\t1.0\n왕\t없는말\t3\n남자\t딸\t4\n",
        encoding="utf-8",
    )
    analogies = tmp_path / "analogy_ko.txt"
    analogies.write_text(
        ": 남녀\n왕 여왕 남자 여자\n남자 여자 아들 딸\n왕 여왕 왕자 공주\n"
        ": 엉뚱\n왕 여왕 코로나 마스크\n",
        encoding="utf-8",
    )
    return pairs, analogies
