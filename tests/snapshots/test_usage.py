"""How words were used, as part of a snapshot: read back as it was, checked, optional."""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from embedding.kernel.errors import SnapshotError
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import USAGE, Usage, read, write


def used(n: int = 4, replicas: int = 3, dim: int = 6) -> Usage:
    rng = np.random.default_rng(2)
    return Usage(
        rows=np.array([5, 0, 2, 0])[:n],
        sources=["뉴스", "청원", "뉴스", "뉴스"][:n],
        mentions=np.array([7, 8, 9, 10])[:n],
        pairs=rng.random((n, replicas)).astype(np.float32),
        means=rng.normal(size=(n, replicas, dim)).astype(np.float16),
    )


def test_it_comes_back_by_source_and_row(make, tmp_path):
    store, use = SnapshotStore(tmp_path), used()
    back = store.open(store.publish(make(), use).id).usage
    order = [3, 2, 0, 1]
    assert back.rows.tolist() == use.rows[order].tolist()
    assert back.sources == [use.sources[at] for at in order]
    assert back.mentions.tolist() == use.mentions[order].tolist()
    assert np.array_equal(back.pairs, use.pairs[order])
    assert np.array_equal(back.means, use.means[order])
    assert back.by_source["뉴스"].tolist() == [0, 1, 2]


def test_texts_read_again_come_back_too_and_an_older_file_has_none(make, tmp_path):
    store = SnapshotStore(tmp_path)
    whole = replace(used(), reread=(used(0), used(3)))
    back = store.open(store.publish(make(), whole).id).usage
    assert [len(part) for part in (back, *back.reread)] == [4, 0, 3]
    assert back.reread[1].rows.tolist() == [2, 5, 0]
    assert np.array_equal(back.reread[1].means, whole.reread[1].means[[2, 0, 1]])
    write(tmp_path / "whole.arrow", used())
    with pa.ipc.open_file(str(tmp_path / "whole.arrow")) as file:
        table = file.get_batch(0).drop_columns(["past"])
    path = str(tmp_path / "usage.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_batch(table)
    with pa.ipc.open_file(path) as file:
        old = read(file.get_batch(0), 6)
    assert np.array_equal(old.means, back.means)
    assert old.reread == ()
    wrong = replace(used(), rows=np.array([5, 0, 2, 99]))
    with pytest.raises(SnapshotError, match="usage"):
        store.publish(make(month=4), replace(used(), reread=(wrong,)))


def test_a_snapshot_without_it_says_none_and_one_with_nothing_is_empty(make, tmp_path):
    store = SnapshotStore(tmp_path)
    assert store.open(store.publish(make()).id).usage is None
    assert len(store.open(store.publish(make(month=3), used(0)).id).usage) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"rows": np.array([5, 0, 2, 99])},
        {"mentions": np.array([1])},
        {"means": np.zeros((4, 3, 5), np.float16)},
        {"means": np.full((4, 3, 6), np.nan, np.float16)},
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_published(make, tmp_path, change):
    store = SnapshotStore(tmp_path)
    with pytest.raises(SnapshotError, match="usage"):
        store.publish(make(), replace(used(), **change))
    assert store.list() == []


def test_a_cut_off_or_changed_file_is_found(make, tmp_path):
    store = SnapshotStore(tmp_path)
    ref = store.publish(make(), used())
    path = tmp_path / ref.id / USAGE
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(SnapshotError, match="SHA-256"):
        store.open(ref.id).verify()
    path.write_bytes(bytes(content[:-8]))
    with pytest.raises(SnapshotError, match="bytes"):
        store.open(ref.id)


def test_a_store_elsewhere_keeps_it_too(make, tmp_path):
    address = f"memory://{tmp_path.name}-{uuid.uuid4().hex}"
    store = SnapshotStore(address, cache=tmp_path / "one")
    ref = store.publish(make(), used())
    fresh = SnapshotStore(address, cache=tmp_path / "two")
    assert len(fresh.open(ref.id).usage) == 4
