"""Erasing from snapshots on S3: kills, lost answers, denials, half-written uploads, copies."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedding.kernel.errors import SnapshotError
from embedding.snapshots.store import SnapshotStore
from s3server import Fault, S3Server, serving_s3

BUCKET, WORD = "yeoron", "마스크"
DENIED = {"status": "403 Forbidden", "code": "AccessDenied"}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with serving_s3(monkeypatch, BUCKET) as server:
        yield server


def store_of(tmp_path: Path, machine: str = "here") -> SnapshotStore:
    return SnapshotStore(f"s3://{BUCKET}/snapshots", cache=tmp_path / machine)


def objects() -> dict[str, bytes]:
    from s3fs import S3FileSystem

    found = S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    return {
        path.removeprefix(f"{BUCKET}/snapshots/"): found.cat_file(path)
        for path in found.find(f"{BUCKET}/snapshots")
    }


def holding(folder: Path) -> list[str]:
    """Objects and files of a cache that hold the word."""
    wanted = WORD.encode()
    held = [name for name, data in objects().items() if wanted in data]
    files = (path for path in folder.rglob("*") if path.is_file())
    return held + [str(path) for path in files if wanted in path.read_bytes()]


@pytest.mark.parametrize("lost", [False, True])
def test_a_lost_or_throttled_answer_is_asked_again(s3, tmp_path, make, lost: bool):
    store = store_of(tmp_path)
    ref = store.publish(make())
    assert holding(tmp_path)
    s3.faults += [
        Fault(method, part, 2, lost=lost)
        for method, part in (
            ("PUT", "erased-1/vectors.arrow"),
            ("PUT", "manifest.json"),
            ("DELETE", f"{ref.id}/vectors.arrow"),
        )
    ]
    store.erase([ref.id], word=WORD)
    assert [fault.times for fault in s3.faults] == [0, 0, 0]
    assert holding(tmp_path) == []
    store_of(tmp_path, "other").open(ref.id).verify()


def test_a_store_that_keeps_nothing_of_what_it_takes_changes_nothing(s3, tmp_path, make):
    store = store_of(tmp_path)
    ref = store.publish(make())
    lie = Fault("PUT", "erased-1/vectors.arrow", 99, status="200 OK")
    s3.faults.append(lie)
    with pytest.raises(SnapshotError, match="has 0 bytes there"):
        store.erase([ref.id], word=WORD)
    lie.times = 1
    assert store_of(tmp_path, "other").open(ref.id).index(WORD) is not None
    store.erase([ref.id], word=WORD)
    assert lie.times == 0
    store_of(tmp_path, "other").open(ref.id).verify()
    store.sweep()
    assert holding(tmp_path / "here") == []


STEPS = [
    ("PUT", "erased-1/counts.arrow"),
    ("PUT", "erased-1/vectors.arrow"),
    ("PUT", "manifest.json"),
    ("DELETE", "vectors.arrow"),
]


@pytest.mark.parametrize(("method", "part"), STEPS)
def test_stopped_at_any_call_the_snapshot_opens_and_the_next_call_ends_it(
    s3, tmp_path, make, method: str, part: str
):
    """The store denies from that call on, which leaves what a kill there would."""
    store = store_of(tmp_path)
    ref = store.publish(make())
    s3.faults.append(Fault(method, part, 99, **DENIED))
    with pytest.raises(SnapshotError, match=r"s3://yeoron/snapshots: cannot be (written|erased)"):
        store.erase([ref.id], word=WORD)
    s3.faults.clear()
    for machine in ("here", "other"):
        snapshot = store_of(tmp_path, machine).open(ref.id)
        snapshot.verify()
        assert (snapshot.index(WORD) is None) == (method == "DELETE"), "changed at once or not"
    store.erase(store.holding(word=WORD), word=WORD)
    store.sweep()
    assert [name for name in objects() if "/vectors.arrow" in name] == [
        f"{ref.id}/erased-1/vectors.arrow"
    ]
    store_of(tmp_path, "other").open(ref.id).verify()
    assert holding(tmp_path) == []


def test_a_copy_on_another_machine_is_replaced_when_it_is_opened_or_swept(s3, tmp_path, make):
    store, other, third = (store_of(tmp_path, name) for name in ("here", "other", "third"))
    ref = store.publish(make())
    for each in (other, third):
        assert each.open(ref.id).index(WORD) is not None
    store.erase([ref.id], word=WORD)
    assert other.open(ref.id).index(WORD) is None
    third.sweep()
    assert holding(tmp_path) == []


def test_half_of_an_upload_goes_when_nobody_can_be_writing_it(s3, tmp_path, make):
    store = store_of(tmp_path)
    whole = store.publish(make(month=1))
    s3.faults.append(Fault("PUT", "manifest.json", 99, **DENIED))
    with pytest.raises(SnapshotError, match="was not published"):
        store.publish(make())
    s3.faults.clear()
    held = len(objects())
    assert held > 3, "half of it is there"
    store.sweep(time.time() - 3600)
    assert len(objects()) == held, "somebody may be writing it"
    store.sweep()
    assert {name.split("/")[0] for name in objects()} == {whole.id}
    store.open(whole.id).verify()
    assert {path.name for path in (tmp_path / "here").glob("*/2020-*")} == {whole.id}


def test_a_list_that_is_old_removes_nothing_that_is_whole(s3, tmp_path, make, monkeypatch):
    store = store_of(tmp_path)
    ref = store.publish(make())
    place = type(store._place)
    real = place._objects
    monkeypatch.setattr(
        place,
        "_objects",
        lambda self, name: [one for one in real(self, name) if "manifest" not in one],
    )
    store.sweep()
    store.open(ref.id).verify()


def test_a_removal_that_is_cut_off_is_ended_by_the_next(s3, tmp_path, make):
    store = store_of(tmp_path)
    old, new = store.publish(make(month=1)), store.publish(make())
    s3.faults.append(Fault("POST", BUCKET, 99, **DENIED))
    with pytest.raises(SnapshotError, match="cannot be erased"):
        store.expire(math.inf, ())
    s3.faults.clear()
    assert [ref.id for ref in store.list()] == [new.id], "nobody takes the rest for a snapshot"
    store.sweep()
    assert {name.split("/")[0] for name in objects()} == {new.id}
    assert list((tmp_path / "here").glob(f"*/{old.id}")) == []


def test_a_store_that_was_copied_from_a_disk_opens(s3, tmp_path, make):
    disk = SnapshotStore(tmp_path / "disk")
    ref = disk.publish(make())
    disk.erase([ref.id], word=WORD)
    from s3fs import S3FileSystem

    for path in (tmp_path / "disk" / ref.id).iterdir():
        S3FileSystem().put_file(str(path), f"{BUCKET}/snapshots/{ref.id}/{path.name}")
    store = store_of(tmp_path)
    store.open(ref.id).verify()
    store.sweep()
    store.erase([ref.id], source="뉴스")
    snapshot = store_of(tmp_path, "other").open(ref.id)
    snapshot.verify()
    assert dict(snapshot.manifest.tokens) == {"청원": 36}
    assert {name.split("/")[1] for name in objects()} == {"erased-2", "manifest.json"}
