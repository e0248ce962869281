"""Addresses of documents by word: sampled alike by everybody, found again, never text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.errors import SnapshotError
from embedding.snapshots.evidence import (
    DAY,
    EVIDENCE_SCHEMA,
    MOST_PARTS,
    NAMING_WORDS,
    PER_DAY,
    SKETCH,
    EvidenceStore,
    page_of,
    sampled,
)

START = datetime(2020, 2, 28, tzinfo=UTC)


def table(rows) -> pa.Table:
    """rows: (word, source, hours after START, hash)."""
    times = [(START + timedelta(hours=row[2])).timestamp() for row in rows]
    return pa.table(
        {
            "word": [row[0] for row in rows],
            "source": [row[1] for row in rows],
            "day": [int(time // DAY) for time in times],
            "hash": [row[3] for row in rows],
            "url": [f"https://{row[1]}.example/{row[3]}" for row in rows],
            "published": times,
        },
        schema=EVIDENCE_SCHEMA,
    )


rows = st.lists(
    st.tuples(
        st.sampled_from(["가", "나"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 60),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=60,
)


@given(rows, st.integers(0, 59))
def test_a_sample_of_samples_is_the_sample_of_all(found, cut):
    whole = sampled(table(found))
    parts = [sampled(table(part)) for part in (found[:cut], found[cut:]) if part]
    again = sampled(pa.concat_tables(parts))
    keys = ("word", "source", "day", "hash")
    assert whole.select(keys).equals(again.select(keys))
    groups: dict[tuple, list[int]] = {}
    for row in table(found).to_pylist():
        groups.setdefault((row["word"], row["source"], row["day"]), []).append(row["hash"])
    for row in whole.to_pylist():
        group = groups[row["word"], row["source"], row["day"]]
        order = sorted(set(group))
        assert row["hash"] in order[:SKETCH]
        assert bool(row["url"]) == (row["hash"] in order[:PER_DAY])
        assert row["published"] == row["day"] * DAY


def test_addresses_are_kept_of_the_first_documents_that_may_name_theirs() -> None:
    found = table([("가", "a", 1, at) for at in range(20)])
    url = [f"https://a.example/{at}" if at % 5 == 4 else "" for at in range(20)]
    blank = found.set_column(found.schema.get_field_index("url"), "url", pa.array(url))
    kept = [row["hash"] for row in sampled(blank).to_pylist() if row["url"]]
    assert kept == [4, 9, 14]


def test_documents_of_a_window_are_found_newest_first_and_from_all_sources(tmp_path):
    store = EvidenceStore(tmp_path)
    store.add(table([("가", "a", hour, hour) for hour in range(0, 96, 3)]), "n1")
    store.add(table([("가", "b", 30, 7), ("나", "b", 30, 8)]), "n2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2020-02", "2020-03"]
    day = START + timedelta(days=1)
    # A window of a few hours has the documents of its day.
    assert store.find("가", day + timedelta(hours=9), day + timedelta(hours=10))
    found = store.find("가", day, day + timedelta(days=1))
    assert {one.source for one in found} == {"a", "b"}
    times = [one.published for one in found]
    assert times == sorted(times, reverse=True)
    assert set(times) == {day.date()}
    assert {one.source for one in store.find("가", START, START + timedelta(days=9), n=2)} == {
        "a",
        "b",
    }
    assert store.find("다", START, day) == []
    assert store.find("\ud800", START, day) == []
    assert EvidenceStore(tmp_path / "none").find("가", START, day) == []


def test_many_small_files_are_joined_and_nothing_is_lost(tmp_path):
    store = EvidenceStore(tmp_path)
    for hour in range(20):
        store.add(table([("가", f"s{hour}", hour, hour)]), "n1")
    assert len(list((tmp_path / "2020-02").iterdir())) <= MOST_PARTS + 1
    found = store.find("가", START, START + timedelta(days=1), n=99)
    assert len(found) == 20


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "2020-02").mkdir()
    (tmp_path / "2020-02" / "n1-0.parquet").write_bytes(b"cut off")
    with pytest.raises(SnapshotError, match=r"n1-0\.parquet: cannot be read"):
        EvidenceStore(tmp_path).find("가", START, START + timedelta(days=1))


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://a.example/1#comment-9", "https://a.example/1"),
        ("https://a.example/1#c9", "https://a.example/1"),
        ("https://a.example/1?no=3&comment_id=9", "https://a.example/1?no=3"),
        ("https://a.example/1?commentNo=9", "https://a.example/1"),
        ("https://a.example/1?no=3&cmt_page=2", "https://a.example/1?no=3&cmt_page=2"),
        ("https://a.example/#!/posts/1", "https://a.example/#!/posts/1"),
        ("https://a.example/1?q=%EA%B0%80", "https://a.example/1?q=%EA%B0%80"),
        ("https://[a.example/1#comment-9", "https://[a.example/1"),
    ],
)
def test_what_names_a_comment_is_cut_off(url: str, page: str) -> None:
    assert page_of(url) == page


def test_a_day_is_counted_exactly_while_few_documents_hold_the_word(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    few = [("가", "a", 1, at) for at in range(SKETCH - 1)]
    store.add(table([*few, ("나", "b", 30, 5)]), "n1")
    store.add(table([*few[:9], ("가", "b", 30, 4)]), "n2")
    found = store.days(["가", "나", "\ud800"], START, START + timedelta(days=3))
    day = int(START.timestamp() // DAY)
    assert [(one.word, one.source, one.day - day, one.documents, one.exact) for one in found] == [
        ("가", "a", 0, SKETCH - 1.0, True),
        ("가", "b", 1, 1.0, True),
        ("나", "b", 1, 1.0, True),
    ]
    assert store.days(["가"], START + timedelta(days=2), START + timedelta(days=3)) == []
    assert EvidenceStore(tmp_path / "none").days(["가"], START, START + timedelta(days=1)) == []


def test_a_day_with_many_documents_is_estimated(tmp_path: Path) -> None:
    store, n = EvidenceStore(tmp_path), 4000
    hashes = np.random.default_rng(1).integers(0, 2**63 - 1, n)
    for part in np.array_split(hashes, 12):
        store.add(table([("가", "a", 1, int(value)) for value in part]), "n1")
    (found,) = store.days(["가"], START, START + timedelta(days=1))
    assert not found.exact
    assert found.documents == pytest.approx(n, rel=0.4)
    rows = pq.read_table(next(tmp_path.rglob("*.parquet")), partitioning=None)
    assert sum(bool(url) for url in rows["url"].to_pylist()) <= PER_DAY


def test_trimmed_files_of_before_hashes_were_kept_say_nothing_of_a_full_day(tmp_path: Path) -> None:
    folder = tmp_path / f"{START:%Y-%m}"
    folder.mkdir()
    old = table([("가", "a", 1, at) for at in range(PER_DAY)] + [("나", "a", 1, 1)])
    marks = {b"yeoron.hashes": str(PER_DAY).encode(), b"yeoron.named": str(NAMING_WORDS).encode()}
    pq.write_table(old.replace_schema_metadata(marks), folder / "n-1.parquet")
    store = EvidenceStore(tmp_path)
    found = store.days(["가", "나"], START, START + timedelta(days=1))
    assert [one.documents for one in found] == [None, 1.0]
    for at in range(MOST_PARTS + 1):
        store.add(table([("다", "a", 2, at)]), "n")
    again = store.days(["가", "나"], START, START + timedelta(days=1))
    assert [one.documents for one in again] == [None, 1.0]


def test_a_file_that_holds_more_than_is_kept_today_is_erased_from_and_not_read(tmp_path: Path):
    folder = tmp_path / f"{START:%Y-%m}"
    folder.mkdir()
    old = table([("가", "a", 1, 1), ("나", "a", 1, 2)])
    pq.write_table(old.replace_schema_metadata({b"yeoron.hashes": b"64"}), folder / "n-1.parquet")
    store, end = EvidenceStore(tmp_path), START + timedelta(days=1)
    assert store.erase(word="가") == 1
    for at in range(2 * MOST_PARTS):
        store.add(table([("다", "a", 1, at)]), "n")
    assert (folder / "n-1.parquet").is_file()
    (folder / "n-2.parquet").write_bytes(b"damaged")
    (sentence,) = store.refused()
    assert "1 files are not read: each is of a version before 28 November 2026" in sentence
    (folder / "n-2.parquet").unlink()
    for ask in (lambda: store.find("나", START, end), lambda: store.days(["나"], START, end)):
        with pytest.raises(SnapshotError, match="once with Yeoron of 30 November 2026"):
            ask()
