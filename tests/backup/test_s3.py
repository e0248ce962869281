"""Backups and snapshots on S3: an upload that is cut off, a lost answer, a denial, an old list."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from backup.conftest import home_settings, tree
from embedding.backup.collecting import back_up
from embedding.backup.repositories import open_repository
from embedding.backup.restoring import restore
from embedding.kernel.errors import ConfigError, InputError, PlatformError, SnapshotError
from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts
from embedding.snapshots.store import SnapshotStore
from s3server import Fault, S3Server, serving_s3

UNFINISHED = "backup.unfinished"

BUCKET = "yeoron"
DENIED = {"status": "403 Forbidden", "code": "AccessDenied"}
FORGOTTEN = {"status": "200 OK"}
"""The store says that it has it, and has not."""


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with serving_s3(monkeypatch, BUCKET) as server:
        yield server


@pytest.fixture
def s3_store(s3: S3Server, tmp_path) -> SnapshotStore:
    return SnapshotStore(f"s3://{BUCKET}/snapshots", cache=tmp_path / "cache")


def other_machine(tmp_path, name: str = "other") -> SnapshotStore:
    return SnapshotStore(f"s3://{BUCKET}/snapshots", cache=tmp_path / name)


def snapshot_data(seed: int = 1) -> SnapshotData:
    words = ("마스크", "여론", "전세")
    n, random = len(words), np.random.default_rng(seed)
    window = Window.holding(datetime(2020, 2, 3, tzinfo=UTC), WindowUnit.MONTH)
    start = int(window.start.timestamp())
    return SnapshotData(
        window=window,
        words=words,
        ids=np.arange(n, dtype=np.int64),
        counts=np.full(n, 9, dtype=np.int64),
        last_seen=np.full(n, start + 60.0),
        vectors=random.normal(size=(n, 4)).astype(np.float32),
        contexts=random.normal(size=(n, 4)).astype(np.float32),
        by_source=WordCounts(
            list(words), ["뉴스"] * n, *(np.full(n, v, np.int64) for v in (start, 9, 1))
        ),
        tokens={"뉴스": 27},
        documents={"뉴스": 3},
        quality={},
        config={},
        config_digest="c" * 64,
        tokenizer_digest="t" * 64,
    )


# -- backups ---------------------------------------------------------------------------------------


@pytest.fixture
def resting(tmp_path):
    """A home without a server, with a file in two stores."""
    settings = home_settings(tmp_path / "home")
    for name in ("snapshots/2020-02-a1b2c3d4/manifest.json", "evidence/2020-02/n0-1.parquet"):
        path = settings.paths.home / name
        path.parent.mkdir(parents=True)
        path.write_bytes(name.encode() * 1000)
    return settings


def fresh(settings, tmp_path):
    paths = settings.paths.model_copy(update={"home": tmp_path / "fresh"})
    return settings.model_copy(update={"paths": paths})


@pytest.mark.timeout(300)
def test_a_running_home_goes_to_s3_and_comes_back(running, s3, tmp_path):
    settings, _, _ = running
    manifest = back_up(settings, f"s3://{BUCKET}/monday")
    again = fresh(settings, tmp_path)
    assert restore(again, f"s3://{BUCKET}/monday") == manifest
    held = {name: data for name, data in tree(settings.paths.snapshots).items() if name != ".lock"}
    assert tree(again.paths.snapshots) == held
    with pytest.raises(InputError, match="holds a backup"):
        back_up(settings, f"s3://{BUCKET}/monday")


@pytest.mark.parametrize("lost", [False, True])
def test_a_throttled_or_lost_answer_is_asked_again(resting, s3, tmp_path, lost: bool):
    s3.faults += [Fault("PUT", "parquet", 2, lost=lost), Fault("GET", "parquet", 2, lost=lost)]
    manifest = back_up(resting, f"s3://{BUCKET}/monday")
    again = fresh(resting, tmp_path)
    restore(again, f"s3://{BUCKET}/monday")
    assert tree(again.paths.evidence) == tree(resting.paths.evidence)
    assert len(manifest.files) == 3
    assert [fault.times for fault in s3.faults] == [0, 0]


def test_a_backup_that_is_denied_midway_passes_for_none(resting, s3, tmp_path):
    s3.faults.append(Fault("PUT", "manifest.json", 99, **DENIED))
    with pytest.raises(PlatformError, match=r"s3://yeoron/monday: the store says: .*"):
        back_up(resting, f"s3://{BUCKET}/monday")
    s3.faults.clear()
    place = open_repository(f"s3://{BUCKET}/monday")
    assert place.read(UNFINISHED) is not None
    again = fresh(resting, tmp_path)
    with pytest.raises(InputError, match="was cut off"):
        restore(again, f"s3://{BUCKET}/monday")
    assert not again.paths.home.exists()
    place.write("evidence/left-over", b"x")
    back_up(resting, f"s3://{BUCKET}/monday")
    assert place.read("evidence/left-over") is None
    restore(again, f"s3://{BUCKET}/monday")


def test_half_an_upload_is_sent_again(resting, s3, monkeypatch, tmp_path):
    place = open_repository(f"s3://{BUCKET}/monday")
    real, calls = place.fs.put_file, []

    def half(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) == 1:
            place.fs.pipe_file(target, Path(source).read_bytes()[:10])
        else:
            real(source, target)

    monkeypatch.setattr(place.fs, "put_file", half)
    back_up(resting, f"s3://{BUCKET}/monday")
    assert calls[0] == calls[1]
    again = fresh(resting, tmp_path)
    restore(again, f"s3://{BUCKET}/monday")
    assert tree(again.paths.evidence) == tree(resting.paths.evidence)


def test_a_store_that_lies_is_found_out(resting, s3, tmp_path):
    back_up(resting, f"s3://{BUCKET}/monday")
    place = open_repository(f"s3://{BUCKET}/monday")
    name = "evidence/2020-02/n0-1.parquet"
    data = place.read(name)
    assert data is not None
    place.write(name, data[:-1] + b"X")
    again = fresh(resting, tmp_path)
    with pytest.raises(InputError, match=f"{name} in .* is damaged"):
        restore(again, f"s3://{BUCKET}/monday")
    assert list(again.paths.home.iterdir()) == []
    place.remove(name)
    with pytest.raises(InputError, match=f"has no {name}"):
        restore(again, f"s3://{BUCKET}/monday")


def test_an_upload_that_was_answered_and_is_not_there_is_sent_again(resting, s3, tmp_path):
    s3.faults.append(Fault("PUT", "parquet", 1, **FORGOTTEN))
    back_up(resting, f"s3://{BUCKET}/monday")
    again = fresh(resting, tmp_path)
    restore(again, f"s3://{BUCKET}/monday")
    assert tree(again.paths.evidence) == tree(resting.paths.evidence)


def test_a_store_that_keeps_nothing_of_what_it_takes_holds_no_backup(resting, s3, tmp_path):
    s3.faults.append(Fault("PUT", "parquet", 99, **FORGOTTEN))
    with pytest.raises(PlatformError, match="has 0 bytes there"):
        back_up(resting, f"s3://{BUCKET}/monday")
    s3.faults.clear()
    with pytest.raises(InputError, match="was cut off"):
        restore(fresh(resting, tmp_path), f"s3://{BUCKET}/monday")


@pytest.mark.parametrize("fault", [DENIED, {}], ids=["denies", "throttles"])
def test_a_store_that_gives_nothing_leaves_the_home_empty(
    resting, s3, tmp_path, fault, monkeypatch
):
    from s3fs import S3FileSystem

    # Else each of three layers asks again for a while.
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(S3FileSystem, "retries", 1)
    monkeypatch.setattr("embedding.snapshots.backends._PAUSE_S", 0.0)
    S3FileSystem.clear_instance_cache()
    back_up(resting, f"s3://{BUCKET}/monday")
    s3.faults.append(Fault("GET", "parquet", 999, **fault))
    again = fresh(resting, tmp_path)
    with pytest.raises(PlatformError, match=r"s3://yeoron/monday: the store says: .*") as said:
        restore(again, f"s3://{BUCKET}/monday")
    assert "\n" not in str(said.value)
    assert list(again.paths.home.iterdir()) == []
    s3.faults.clear()
    restore(again, f"s3://{BUCKET}/monday")


def test_a_place_that_lists_nothing_is_not_taken_for_empty(resting, s3, monkeypatch):
    back_up(resting, f"s3://{BUCKET}/monday")
    monkeypatch.setattr(type(open_repository(f"s3://{BUCKET}/monday")), "names", lambda _: [])
    with pytest.raises(InputError, match="holds a backup"):
        back_up(resting, f"s3://{BUCKET}/monday")


def test_a_bucket_that_is_not_there_is_said(resting, s3):
    with pytest.raises(PlatformError, match="nowhere"):
        back_up(resting, "s3://nowhere/monday")
    with pytest.raises(InputError, match="there is no backup"):
        restore(fresh(resting, resting.paths.home.parent), "s3://nowhere/monday")


def test_a_store_that_does_not_answer_is_said(resting, s3, monkeypatch):
    from s3fs import S3FileSystem

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed.getsockname()[1]}")
        S3FileSystem.clear_instance_cache()
        with pytest.raises(PlatformError, match="the store says"):
            back_up(resting, f"s3://{BUCKET}/monday")


@pytest.mark.parametrize("address", ["", "nonsense://x/y"])
def test_an_address_that_cannot_be_is_refused(address: str):
    with pytest.raises(ConfigError, match="backup"):
        open_repository(address)


def test_without_s3fs_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(
        "fsspec.core.url_to_fs",
        lambda *_: (_ for _ in ()).throw(ImportError("Install s3fs to access S3")),
    )
    with pytest.raises(ConfigError, match=r"Install s3fs.*yeoron\[s3\]"):
        open_repository("s3://a/b")


# -- snapshots -------------------------------------------------------------------------------------


def test_a_snapshot_is_published_listed_and_read_elsewhere(s3_store, tmp_path):
    ref = s3_store.publish(snapshot_data())
    assert s3_store.publish(snapshot_data()).id == ref.id
    other = other_machine(tmp_path)
    assert [one.id for one in other.list()] == [ref.id]
    other.open(ref.id).verify()
    s3_store.withdraw([ref.id], "a test")
    assert other.list() == []
    with pytest.raises(SnapshotError, match="withdrawn"):
        other.open(ref.id)
    other.reinstate([ref.id])
    assert len(s3_store.list()) == 1


@pytest.mark.parametrize("lost", [False, True])
def test_uploads_that_fail_for_a_moment_are_made_again(s3, s3_store, tmp_path, lost: bool):
    s3.faults += [
        Fault("PUT", "vectors.arrow", 2, lost=lost),
        Fault("PUT", "manifest.json", 2, lost=lost),
    ]
    ref = s3_store.publish(snapshot_data())
    other_machine(tmp_path).open(ref.id).verify()


def test_a_snapshot_that_is_cut_off_is_nobody_s_and_the_next_call_ends_it(s3, s3_store, tmp_path):
    s3.faults.append(Fault("PUT", "manifest.json", 99, **DENIED))
    with pytest.raises(SnapshotError, match="was not published"):
        s3_store.publish(snapshot_data())
    s3.faults.clear()
    other = other_machine(tmp_path)
    assert other.list() == []
    with pytest.raises(SnapshotError, match="holds no snapshot"):
        other.open()
    ref = s3_store.publish(snapshot_data())
    other.open(ref.id).verify()


def test_a_store_that_keeps_nothing_of_what_it_takes_has_no_snapshot(s3, s3_store, tmp_path):
    s3.faults.append(Fault("PUT", "vectors.arrow", 99, **FORGOTTEN))
    with pytest.raises(SnapshotError, match="has 0 bytes there"):
        s3_store.publish(snapshot_data())
    s3.faults.clear()
    assert other_machine(tmp_path).list() == []
    s3_store.open(s3_store.publish(snapshot_data()).id).verify()


def test_a_list_that_is_old_hides_no_snapshot_from_who_knows_its_name(
    s3_store, tmp_path, monkeypatch
):
    ref = s3_store.publish(snapshot_data())
    other = other_machine(tmp_path)
    monkeypatch.setattr(type(other._place), "names", lambda _: [])
    other.open(ref.id).verify()
    other.withdraw([ref.id], "a test")


def test_a_file_that_is_not_what_the_manifest_says_is_not_taken(s3_store, tmp_path):
    ref = s3_store.publish(snapshot_data())
    place = open_repository(f"s3://{BUCKET}/snapshots/{ref.id}")
    data = place.read("vectors.arrow")
    assert data is not None
    place.write("vectors.arrow", data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(SnapshotError, match=r"vectors.arrow in s3://.* is damaged"):
        other_machine(tmp_path).open(ref.id)


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_denial_is_one_sentence(s3, s3_store, method: str):
    s3.faults.append(Fault(method, "", 999, **DENIED))
    call = s3_store.list if method == "GET" else lambda: s3_store.publish(snapshot_data())
    with pytest.raises(SnapshotError, match=r"snapshot store s3://yeoron/snapshots: cannot be"):
        call()
