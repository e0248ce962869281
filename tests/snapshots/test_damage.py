"""Snapshots that are broken, half-written, or written at the same time."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from embedding.kernel.errors import SnapshotError, YeoronError
from embedding.kernel.records import Phrase
from embedding.snapshots.files import validate
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore


def _hidden(store: SnapshotStore) -> list[str]:
    return [path.name for path in Path(store.uri).glob(".publishing*")]


@pytest.mark.parametrize("name", ["vectors.arrow", "counts.arrow", "manifest.json"])
def test_a_missing_file_is_named(folder, make, caplog, name):
    whole = folder.publish(make(month=1))
    ref = folder.publish(make(month=2))
    (Path(ref.uri) / name).unlink()
    with pytest.raises(SnapshotError, match=f"snapshot {ref.id}: {name} is missing"):
        folder.open(ref.id)
    with caplog.at_level(logging.WARNING):
        assert folder.list() == [whole]
        assert folder.list() == [whole]
    assert caplog.text.count(f"{name} is missing") == 1
    assert name in folder.broken()[ref.id]


def test_a_damaged_file_is_named_with_both_digests(folder, make):
    ref = folder.publish(make())
    path = Path(ref.uri) / "vectors.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    snapshot = folder.open(ref.id)
    expected = snapshot.manifest.files["vectors.arrow"].sha256
    with pytest.raises(SnapshotError, match=r"vectors\.arrow is damaged") as caught:
        snapshot.verify()
    digests = [word.strip(",.") for word in str(caught.value).split() if len(word) > 60]
    assert len(set(digests)) == 2
    assert expected in digests


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("vectors.arrow", "word"),
        ("counts.arrow", "word"),
        ("phrases.arrow", "word"),
        ("phrases.arrow", "parts"),
    ],
)
def test_a_file_made_by_hand_with_wild_offsets_ends_no_reader(folder, make, name, column):
    """Arrow follows offsets wherever they lead: each reader died of SIGSEGV."""
    parts = (
        Phrase("코로나", ("코", "로나"), 1.0, 2.0, 3),
        Phrase("마스크", ("마", "스크"), 1.0, 2.0, 3),
    )
    ref = folder.publish(make(phrases=parts))
    path = Path(ref.uri) / name
    with pa.ipc.open_file(path) as reader:
        held = reader.get_batch(0).column(column)
    held = held.dictionary if pa.types.is_dictionary(held.type) else held
    offsets = held.buffers()[1].to_pybytes()[: 4 * (len(held) + 1)]
    wild = np.frombuffer(offsets, np.int32).copy()
    wild[1:] += 2**30
    content = path.read_bytes()
    assert content.count(offsets) >= 1
    path.write_bytes(content.replace(offsets, wild.tobytes()))
    with pytest.raises(SnapshotError, match="not a readable Arrow file"):
        everything(folder.open(ref.id))
    manifest = json.loads((path.parent / "manifest.json").read_text())
    manifest["files"][name]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SnapshotError, match=r"not a readable Arrow file|has the id"):
        folder.open(ref.id).verify()
    with pytest.raises(SnapshotError):
        folder.erase([ref.id], word="로나")


def everything(snapshot: Snapshot) -> None:
    assert snapshot.words
    assert snapshot.by_source.words
    assert snapshot.phrases


def test_a_manifest_nested_without_end_breaks_its_own_snapshot_alone(folder, make):
    whole, ref = folder.publish(make(month=1)), folder.publish(make(month=2))
    nested = '{"format": ' + '{"a": ' * 5_000 + "1" + "}" * 5_001
    (Path(ref.uri) / "manifest.json").write_text(nested)
    assert folder.list() == [whole]
    assert "nested too deeply" in folder.broken()[ref.id]


def test_a_file_is_validated_once_a_process_while_it_does_not_change(folder, make):
    ref = folder.publish(make())
    assert folder.open(ref.id).words
    path = Path(ref.uri) / "vectors.arrow"
    with path.open("rb") as file:
        validate(None, file.fileno())
    path.touch()
    with path.open("rb") as file, pytest.raises(AttributeError):
        validate(None, file.fileno())


def test_a_truncated_file_is_refused_at_once(folder, make):
    ref = folder.publish(make())
    path = Path(ref.uri) / "counts.arrow"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SnapshotError, match=r"counts\.arrow has \d+ bytes, the manifest says \d+"):
        folder.open(ref.id)
    assert ref.id in folder.broken()


def test_an_edited_manifest_does_not_verify(folder, make):
    ref = folder.publish(make())
    path = Path(ref.uri) / "manifest.json"
    content = json.loads(path.read_text())
    content["tokens"]["뉴스"] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(SnapshotError, match=r"manifest\.json was changed"):
        folder.open(ref.id).verify()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not valid JSON"),
        ("[]", "format None is not known"),
        ('{"format": 99}', "format 99 is of a newer version of Yeoron; this version reads 1"),
        ('{"format": 1}', "Field required"),
    ],
)
def test_an_unreadable_manifest(folder, make, text, sentence):
    ref = folder.publish(make())
    (Path(ref.uri) / "manifest.json").write_text(text)
    assert sentence in folder.broken()[ref.id]
    assert folder.list() == []


def test_a_renamed_snapshot_is_broken(folder, make):
    ref = folder.publish(make())
    Path(ref.uri).rename(Path(ref.uri).with_name("2020-02-ffffffff"))
    assert "belongs to" in folder.broken()["2020-02-ffffffff"]


def test_publishing_repairs_a_snapshot_that_lost_a_file(folder, make):
    ref = folder.publish(make())
    (Path(ref.uri) / "vectors.arrow").unlink()
    assert folder.publish(make()) == ref
    folder.open(ref.id).verify()
    assert _hidden(folder) == []


def test_a_failed_write_leaves_nothing(folder, make, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("embedding.snapshots.format.write_counts", full)
    with pytest.raises(SnapshotError, match="No space left on device; nothing was published"):
        folder.publish(make())
    assert folder.list() == []
    assert _hidden(folder) == []


def test_a_publisher_that_is_killed_leaves_nothing_visible(folder, make):
    """A process dies between writing and renaming; the next publisher cleans up."""
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "import conftest\n"
        "from embedding.snapshots import backends\n"
        "from embedding.snapshots.store import SnapshotStore\n"
        "backends.sync = lambda path: os._exit(9)\n"
        "SnapshotStore(sys.argv[1]).publish(conftest.build())\n"
    )
    command = [sys.executable, "-c", program, folder.uri, str(Path(__file__).parent)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run(command, timeout=150, check=False, env=environment)
    assert ended.returncode == 9
    assert len(_hidden(folder)) == 1
    assert folder.list() == []
    assert folder.broken() == {}
    ref = folder.publish(make())
    assert folder.list() == [ref]
    assert _hidden(folder) == []


def test_publishers_at_the_same_time(folder, make):
    datas = [make(month=month, seed=seed) for month in (1, 2, 3) for seed in (1, 1, 2)]
    failures: list[YeoronError] = []

    def publish(data: object) -> None:
        try:
            SnapshotStore(folder.uri).publish(data)
        except YeoronError as error:
            failures.append(error)

    threads = [threading.Thread(target=publish, args=(data,)) for data in datas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=150)
    assert failures == []
    assert len(folder.list()) == 6
    for ref in folder.list():
        folder.open(ref.id).verify()
    assert _hidden(folder) == []


def test_a_remote_snapshot_without_its_manifest_is_not_there_yet(make, tmp_path):
    import fsspec

    store = SnapshotStore("memory://half", cache=tmp_path / "cache")
    fsspec.filesystem("memory").pipe("/half/2020-02-aaaaaaaa/vectors.arrow", b"x")
    assert store.list() == []
    assert "manifest.json is missing" in store.broken()["2020-02-aaaaaaaa"]
    with pytest.raises(SnapshotError, match="missing"):
        store.open("2020-02-aaaaaaaa")
    fsspec.filesystem("memory").rm("/half", recursive=True)


def test_a_remote_snapshot_is_read_by_another_machine(make, tmp_path):
    import fsspec

    first = SnapshotStore("memory://shared", cache=tmp_path / "one")
    second = SnapshotStore("memory://shared", cache=tmp_path / "two")
    ref = first.publish(make())
    assert second.list() == [ref]
    second.open(ref.id).verify()
    fsspec.filesystem("memory").rm("/shared", recursive=True)


@pytest.mark.parametrize(
    "name", ["../../PLANTED.arrow", "/tmp/PLANTED.arrow", "PLANTED", "a/b.arrow"]
)
def test_a_remote_manifest_names_plain_files_only(make, tmp_path, name):
    """Whoever writes to the store must not write elsewhere on the reader's machine."""
    store, files, folder = planted_remote(make, tmp_path)
    manifest = json.loads(files.cat(f"{folder}/manifest.json"))
    manifest["files"][name] = {"size": 5, "sha256": "0" * 64}
    files.pipe(f"{folder}/manifest.json", json.dumps(manifest).encode())
    files.pipe(f"{folder}/{name}", b"mine!")
    with pytest.raises(SnapshotError, match="pattern"):
        store.open(folder.rsplit("/", 1)[-1])
    assert [path for path in tmp_path.rglob("*") if "PLANTED" in path.name] == []


def test_a_remote_file_of_another_size_is_not_fetched(make, tmp_path):
    store, files, folder = planted_remote(make, tmp_path)
    files.pipe(f"{folder}/vectors.arrow", b"x" * 10_000_000)
    with pytest.raises(SnapshotError, match="has 10000000 bytes"):
        store.open(folder.rsplit("/", 1)[-1])


def test_a_remote_listing_gives_names_of_snapshots_only(make, tmp_path):
    store, files, folder = planted_remote(make, tmp_path)
    for name in ("\x1b[2J", "a b", "-x", "n" * 121):
        files.pipe(f"{folder.rsplit('/', 1)[0]}/{name}/manifest.json", b"{}")
    assert store.broken() == {}
    assert len(store.list()) == 1


def planted_remote(make, tmp_path):
    """A store that another process filled, its file system, and the folder of its one snapshot."""
    import fsspec

    root = f"doors-{uuid.uuid4().hex}"
    ref = SnapshotStore(f"memory://{root}", cache=tmp_path / "writer").publish(make())
    store = SnapshotStore(f"memory://{root}", cache=tmp_path / "reader")
    return store, fsspec.filesystem("memory"), f"/{root}/{ref.id}"
