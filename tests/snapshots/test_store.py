"""The contract of SnapshotStore, over every kind of place."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from embedding.kernel.errors import ConfigError, InputError, SnapshotError
from embedding.kernel.records import Phrase, SnapshotRef, Window, WindowUnit
from embedding.snapshots.store import SnapshotStore


def test_what_is_published_is_read_back(store, make):
    data = make()
    ref = store.publish(data)
    snapshot = store.open(ref.id)
    assert re.fullmatch(r"2020-02-[0-9a-f]{8}", ref.id)
    assert snapshot.ref == ref
    assert snapshot.words == tuple(data.words)
    for name in ("ids", "counts", "last_seen", "vectors", "contexts"):
        read = getattr(snapshot, name)
        np.testing.assert_array_equal(read, getattr(data, name))
        assert read.dtype == getattr(data, name).dtype
    manifest = snapshot.manifest
    assert manifest.tokens == data.tokens
    assert manifest.documents == data.documents
    assert manifest.quality == data.quality
    assert manifest.config == data.config
    assert manifest.as_window() == data.window
    assert (manifest.config_digest, manifest.tokenizer_digest) == ("c" * 64, "t" * 64)
    snapshot.verify()


def test_phrases_are_read_back_by_word(store, make):
    phrases = (
        Phrase("확진자", ("확진", "자"), 5.0, 7.5, 3),
        Phrase("마스크", ("마", "스크"), 1.0, 1.0, 0),
    )
    snapshot = store.open(store.publish(make(phrases=phrases)).id)
    assert snapshot.phrases == {phrase.word: phrase for phrase in phrases}
    assert "phrases.arrow" in snapshot.manifest.files
    snapshot.verify()
    without = store.open(store.publish(make()).id)
    assert without.phrases == {}
    assert "phrases.arrow" not in without.manifest.files


def test_counts_by_source_survive(store, make):
    data = make()
    snapshot = store.open(store.publish(data).id)
    rows, read = data.by_source, snapshot.by_source
    expected = set(zip(rows.words, rows.sources, rows.windows, rows.counts, strict=True))
    assert set(zip(read.words, read.sources, read.windows, read.counts, strict=True)) == expected
    assert snapshot.source_counts("코로나") == {"청원": (1, 1, 0), "뉴스": (9, 1, 0)}
    assert snapshot.source_counts("없는말") == {}


def test_publishing_the_same_twice_returns_the_first(store, make):
    first = store.publish(make())
    assert store.publish(make()) == first
    assert store.list() == [first]


def test_other_content_has_another_id(store, make):
    assert store.publish(make()).id != store.publish(make(seed=2)).id
    assert store.publish(make()).id != store.publish(make(parent="2020-01-00000000")).id


def test_the_order_of_counts_rows_does_not_matter(store, make):
    data = make()
    rows = data.by_source
    turned = replace(
        rows,
        words=rows.words[::-1],
        sources=rows.sources[::-1],
        windows=rows.windows[::-1],
        counts=rows.counts[::-1],
        documents=rows.documents[::-1],
    )
    assert store.publish(replace(data, by_source=turned)).id == store.publish(data).id


def test_list_is_in_event_time_and_latest_is_its_end(store, make):
    refs = [store.publish(make(month=month)) for month in (3, 1, 2)]
    assert [ref.window_start.month for ref in store.list()] == [1, 2, 3]
    assert store.open().ref == refs[0]
    assert store.open("latest").ref == refs[0]


def test_a_window_cut_again_comes_after_its_parent(store, make):
    ref = store.publish(make())
    for seed in range(2, 6):
        ref = store.publish(make(seed=seed, parent=ref.id))
        assert store.open("latest").id == ref.id


def test_refs_fit_an_xcom(store, make):
    ref = store.publish(make())
    assert SnapshotRef.from_dict(ref.to_dict()) == ref
    assert ref.words == 8


def test_an_empty_store(store):
    assert store.list() == []
    assert store.broken() == {}
    with pytest.raises(SnapshotError, match="holds no snapshot yet"):
        store.open()


def test_an_empty_window(store, make):
    data = make(words=())
    snapshot = store.open(store.publish(data).id)
    assert len(snapshot) == 0
    assert snapshot.vectors.shape == (0, 6)
    assert snapshot.index("코로나") is None


@pytest.mark.parametrize("name", ["", "../outside", "a/b", ".hidden", "x" * 200])
def test_an_id_is_not_a_path(store, name):
    with pytest.raises(SnapshotError, match="is not a snapshot id"):
        store.open(name)


def test_a_snapshot_is_found_that_a_list_lacks_for_a_moment(tmp_path, make, monkeypatch):
    """As happens where another directory is renamed while the folder is listed."""
    store = SnapshotStore(tmp_path)
    ref = store.publish(make())
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(()))
    assert store.open(ref.id).ref == ref
    store.withdraw([ref.id], "it is wrong")
    with pytest.raises(SnapshotError, match="there is none of that id"):
        store.withdraw(["../2020-02-00000000"], "it is no snapshot")
    with pytest.raises(SnapshotError, match="there is none of that id"):
        store.withdraw(["."], "it is no snapshot")


def test_an_unknown_id(store, make):
    store.publish(make())
    with pytest.raises(SnapshotError, match="2020-02-00000000: there is none"):
        store.open("2020-02-00000000")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"vectors": np.zeros((3, 6), np.float32)}, r"shape \[8, dim\] belong to 8 words"),
        ({"contexts": np.zeros((8, 5), np.float32)}, "belong to 8 words"),
        ({"ids": np.arange(7)}, "one entry for each word"),
        ({"ids": np.zeros(8, np.int64)}, "occurs twice"),
        ({"words": ("코로나",) * 8}, "occurs twice"),
        ({"vectors": np.full((8, 6), np.nan, np.float32)}, "8 rows of vectors are not finite"),
    ],
)
def test_unusable_data_publish_nothing(store, make, change, sentence):
    with pytest.raises(SnapshotError, match=sentence):
        store.publish(make(**change))
    assert store.list() == []


def test_quality_that_is_no_number_is_left_out(store, make):
    ref = store.publish(make(quality={"nll": float("nan"), "pip": 0.5}))
    assert store.open(ref.id).manifest.quality == {"pip": 0.5}


def test_a_snapshot_that_names_no_time_zone_is_of_utc(store, make):
    manifest = store.manifest(store.publish(make()).id)
    assert manifest.timezone == "UTC"
    assert manifest.ref("x").window_start == datetime(2020, 2, 1, tzinfo=UTC)


def test_a_window_keeps_the_offsets_of_its_time_zone(store, make):
    """New York puts its clock forward within the month."""
    moment = datetime(2020, 3, 5, tzinfo=ZoneInfo("America/New_York"))
    march = Window.holding(moment, WindowUnit.MONTH)
    config = {"server": {"timezone": "America/New_York"}}
    ref = SnapshotRef.from_dict(store.publish(make(window=march, config=config)).to_dict())
    assert store.manifest(ref.id).timezone == "America/New_York"
    assert ref.window_start.isoformat() == "2020-03-01T00:00:00-05:00"
    assert ref.window_end.isoformat() == "2020-04-01T00:00:00-04:00"
    assert Window(ref.window_start, ref.window_end).label == "2020-03"
    assert store.manifest(ref.id).as_window() == march


def test_windows_without_a_calendar_name(store, make):
    window = Window(
        datetime(2020, 2, 3, 4, 30, tzinfo=UTC), datetime(2020, 2, 3, 5, 30, tzinfo=UTC)
    )
    ref = store.publish(make(window=window))
    assert ref.id.startswith("20200203T0430_20200203T0530-")
    assert store.open(ref.id).manifest.as_window() == window


@pytest.mark.parametrize("uri", ["", "  ", "nosuchprotocol://x"])
def test_an_address_that_cannot_work(uri):
    with pytest.raises(ConfigError, match="snapshot store"):
        SnapshotStore(uri)


def test_a_file_is_no_store(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(InputError, match="a folder is expected"):
        SnapshotStore(path)
