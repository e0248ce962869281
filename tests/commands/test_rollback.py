"""`yeoron rollback`: what it would do, and what it refuses before anything is changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts
from embedding.snapshots.store import SnapshotStore


def cut(month: int, sources: dict[str, int], parent: str | None) -> SnapshotData:
    window = Window.holding(datetime(2020, month, 3, tzinfo=UTC), WindowUnit.MONTH)
    vectors = np.eye(2, dtype=np.float32)
    start, two = int(window.start.timestamp()), np.ones(2, np.int64)
    return SnapshotData(
        window=window,
        words=("말", "글"),
        ids=np.arange(2),
        counts=two,
        last_seen=np.full(2, start + 5.0),
        vectors=vectors,
        contexts=vectors,
        by_source=WordCounts(["말", "글"], ["news"] * 2, np.full(2, start), two, two),
        tokens=sources,
        documents=sources,
        quality={},
        parent=parent,
        config={},
        config_digest="c" * 64,
        tokenizer_digest="t" * 64,
    )


@pytest.fixture
def ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """January of news alone, February and March with a board."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "var"))
    from embedding.settings import load_settings

    store, parent, made = SnapshotStore(str(load_settings().paths.snapshots)), None, []
    for month, board in ((1, 0), (2, 7), (3, 9)):
        sources = {"news": 5, **({"board": board} if board else {})}
        parent = store.publish(cut(month, sources, parent)).id
        made.append(parent)
    return made


@pytest.mark.parametrize(
    ("options", "base", "withdrawn"),
    [
        (["--source", "board"], 0, [1, 2]),
        (["--source", "news"], None, [0, 1, 2]),
        (["--source", "board", "--since", "2020-03"], 1, [2]),
        (["--since", "2020-01"], None, [0, 1, 2]),
        (["--to", "1"], 1, [2]),
        (["--to", "nothing"], None, [0, 1, 2]),
    ],
)
def test_what_it_would_do(yeoron, ids, options, base, withdrawn):
    options = [ids[int(each)] if each.isdigit() else each for each in options]
    done = yeoron("rollback", *options, "--dry-run", "--json")
    assert done.code == 0, done.err
    plan = json.loads(done.out)
    assert plan["base"] == (None if base is None else ids[base])
    assert plan["withdrawn"] == [ids[each] for each in withdrawn]
    shown = yeoron("rollback", *options, "--dry-run").out
    assert all(ids[each] in shown for each in withdrawn)
    listed = json.loads(yeoron("snapshot", "list", "--json").out)
    assert [each["id"] for each in listed["snapshots"]] == ids


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "a snapshot to go back to, a source or a first window is needed"),
        (["--to", "nothing", "--since", "2020-01"], "not both"),
        (["--source", "blog"], "no snapshot holds text of source 'blog'; they hold board, news"),
        (["--since", "2019-01"], "'2019-01': no snapshot and no window of the store"),
        (["--to", "2019-01-00000000"], "no snapshot and no window of the store"),
    ],
)
def test_what_says_nothing_is_one_sentence(yeoron, ids, options, said):
    done = yeoron("rollback", *options, "--yes")
    assert done.code in (1, 2)
    assert said in done.err.replace("\n", " ")


def test_withdrawing_one_and_putting_it_back(yeoron, ids):
    assert yeoron("snapshot", "withdraw", ids[2], "--reason", "bad gold").code == 0
    listed = json.loads(yeoron("snapshot", "list", "--json").out)
    assert [each["id"] for each in listed["snapshots"]] == ids[:2]
    assert listed["withdrawn"][ids[2]]["reason"] == "bad gold"
    assert "bad gold" in yeoron("snapshot", "list").out
    assert yeoron("snapshot", "reinstate", ids[2]).code == 0
    assert len(json.loads(yeoron("snapshot", "list", "--json").out)["snapshots"]) == 3


def test_a_source_that_is_not_blocked(yeoron, ids):
    done = yeoron("sources", "unblock", "board")
    assert done.code == 2
    assert "it is not blocked" in done.err
