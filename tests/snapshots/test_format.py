"""The files themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedding.snapshots import format as layout
from embedding.snapshots.store import SnapshotStore
from generated import examples


def test_the_layout_is_the_documented_one(folder, make):
    path = Path(folder.publish(make()).uri)
    assert sorted(p.name for p in path.iterdir()) == [
        "counts.arrow",
        "manifest.json",
        "vectors.arrow",
    ]
    with pa.memory_map(str(path / "vectors.arrow")) as source:
        reader = pa.ipc.open_file(source)
        assert reader.num_record_batches == 1
        assert reader.schema == pa.schema(
            {
                "word": pa.string(),
                "id": pa.int64(),
                "count": pa.int64(),
                "last_seen": pa.float64(),
                "in": pa.list_(pa.float32(), 6),
                "out": pa.list_(pa.float32(), 6),
            }
        )
    with pa.memory_map(str(path / "counts.arrow")) as source:
        names = pa.ipc.open_file(source).schema.names
    assert names == ["word", "source", "window", "count", "documents", "authors", "voices"]


def test_the_same_data_have_the_same_bytes(make, tmp_path):
    paths = [Path(SnapshotStore(tmp_path / name).publish(make()).uri) for name in ("one", "two")]
    for name in ("vectors.arrow", "counts.arrow", "manifest.json"):
        assert (paths[0] / name).read_bytes() == (paths[1] / name).read_bytes()


def test_strided_tables_are_written_right(folder, make):
    wide = np.arange(8 * 12, dtype=np.float32).reshape(8, 12)
    data = make(vectors=wide[:, ::2], contexts=np.asfortranarray(wide[:, 1::2]))
    snapshot = folder.open(folder.publish(data).id)
    np.testing.assert_array_equal(snapshot.vectors, wide[:, ::2])
    np.testing.assert_array_equal(snapshot.contexts, wide[:, 1::2])


@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(st.sets(st.text(st.characters(codec="utf-8"), max_size=8), max_size=12))
def test_any_words_survive(folder, make, words):
    ordered = tuple(sorted(words))
    snapshot = folder.open(folder.publish(make(words=ordered)).id)
    assert snapshot.words == ordered
    assert snapshot.rows(ordered).tolist() == list(range(len(ordered)))


def test_the_id_depends_on_every_field(make):
    manifest = layout.make_manifest(make(), {})
    changed = {"parent": "x", "tokens": {}, "quality": {}, "code_version": "9", "dim": 1}
    ids = {manifest.model_copy(update={k: v}).expected_id() for k, v in changed.items()}
    assert len(ids | {manifest.id}) == len(changed) + 1
