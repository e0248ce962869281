"""The store of a training: on a full disk, and where it is killed while its snapshots appear."""

from __future__ import annotations

import json
import os
import stat
from multiprocessing import get_context
from pathlib import Path

import pytest
from calling import sentences

from disks import full, small_disk
from embedding.kernel.errors import InputError
from embedding.snapshots.store import SnapshotStore
from embedding.training.engine import new_store

QUICK = ("--dim", "16", "--sample", "0", "--json")


def killed_after(moves: int, out: Path, folder: Path) -> None:
    """Move a store to `out` in a process that ends as if killed once it has renamed so much."""
    rename = os.rename

    def counted(*names: object, **more: object) -> None:
        nonlocal moves
        if moves == 0:
            os._exit(9)
        moves -= 1
        rename(*names, **more)  # type: ignore[arg-type]

    os.rename = counted
    with new_store(out, folder):
        pass


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    corpus = tmp_path / "c.jsonl"
    with corpus.open("w", encoding="utf-8") as file:
        for month in (1, 2, 3):
            for at, text in enumerate(sentences(4_000, month).splitlines()):
                date = f"2021-{month:02d}-{1 + at % 27:02d}"
                file.write(json.dumps({"date": date, "text": text}) + "\n")
    return corpus


def published(out: Path) -> dict[int, int]:
    """Documents by month."""
    store = SnapshotStore(out)
    found = [store.open(ref.id) for ref in store.list()]
    for each in found:
        each.verify()
    return {each.ref.window_start.month: sum(each.manifest.documents.values()) for each in found}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_full_disk_publishes_nothing_and_the_same_command_goes_on(
    yeoron, tmp_path: Path, dated: Path
) -> None:
    whole = tmp_path / "whole"
    assert yeoron("train", dated, "--dated", "--window", "month", "--out", whole, *QUICK).code == 0
    expected = published(whole)
    assert sorted(expected) == [1, 2, 3]
    assert {stat.S_IMODE(path.stat().st_mode) for path in whole.rglob("*")} == {0o600, 0o700}
    with small_disk(tmp_path) as disk:
        out = disk / "store"
        arguments = (dated, "--dated", "--window", "month", "--out", out, *QUICK)
        arguments = (*arguments, "--state-dir", tmp_path / "state")
        out.mkdir()
        with full(disk):
            done = yeoron("train", *arguments)
            assert done.code == 2, done.err
            assert "No space left on device" in done.err
            assert "Nothing is published" in done.err
            assert list(out.iterdir()) == []
        done = yeoron("train", *arguments)
        assert done.code == 0, done.err
        assert published(out) == expected
        assert not (tmp_path / "state").exists()
        assert yeoron("train", *arguments).code == 2, "another training into the same folder"


@pytest.fixture(scope="module")
def trained(planted, tmp_path_factory) -> Path:
    """Three snapshots, as the state folder of a training holds them."""
    store = SnapshotStore(tmp_path_factory.mktemp("state") / "snapshots")
    plan = planted.Plan(seed=1, windows=3, fillers=40, moved={}, born={}, risen={}, lone={})
    for data in planted.stream(plan):
        store.publish(data)
    return Path(store.uri)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("after", range(4))
def test_killed_between_two_moves_the_same_training_ends_its_store(
    tmp_path: Path, trained: Path, after: int, hidden: bool
) -> None:
    """Into a new folder all come at once; beside hidden entries each comes by itself."""
    out = tmp_path / "store"
    if hidden:
        out.mkdir()
        (out / ".mine").write_text("")
    whole = [ref.id for ref in SnapshotStore(trained).list()]
    moving = get_context("fork").Process(target=killed_after, args=(after, out, trained))
    moving.start()
    moving.join(300)
    there = [ref.id for ref in SnapshotStore(out).list()] if out.exists() else []
    assert there in ([], whole) or hidden
    assert [ref.id for ref in SnapshotStore(trained).list()] == whole
    with new_store(out, trained) as folder:
        assert folder == trained
    assert [ref.id for ref in SnapshotStore(out).list()] == whole
    left = [path for path in (*tmp_path.iterdir(), *out.iterdir()) if ".training-" in path.name]
    assert left == [], moving.exitcode


def test_a_store_of_another_training_is_refused(tmp_path: Path, trained: Path) -> None:
    out = tmp_path / "store"
    with new_store(out, trained):
        pass
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(InputError, match="it holds snapshot"), new_store(out, other):
        pass
    with pytest.raises(InputError, match="it holds snapshot"), new_store(out):
        pass


def test_a_folder_keeps_its_mode(tmp_path: Path, trained: Path) -> None:
    out = tmp_path / "store"
    out.mkdir(mode=0o750)
    out.chmod(0o750)
    with new_store(out, trained):
        pass
    assert stat.S_IMODE(out.stat().st_mode) == 0o750
