"""Snapshots that are taken out of the series, and put back."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from embedding.kernel.errors import SnapshotError
from embedding.snapshots.store import NOTE, SnapshotStore


@pytest.fixture(params=["folder", "remote"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> SnapshotStore:
    if request.param == "folder":
        return SnapshotStore(tmp_path / "store")
    address = f"memory://{uuid.uuid4().hex}"
    return SnapshotStore(address, cache=tmp_path / "cache")


def test_a_withdrawn_snapshot_is_in_no_list_and_says_why(place, make):
    first, second = (place.publish(make(month=month)) for month in (1, 2))
    place.withdraw([second.id], "스팸이 섞였다")
    assert [ref.id for ref in place.list()] == [first.id]
    assert place.open().id == first.id
    assert place.broken() == {}
    with pytest.raises(SnapshotError, match=r"was withdrawn on .*스팸이 섞였다.*reinstate"):
        place.open(second.id)
    again = SnapshotStore(place.uri)
    assert again.withdrawn()[second.id].reason == "스팸이 섞였다"
    place.reinstate([second.id])
    assert place.open().id == second.id
    assert place.withdrawn() == {}


def test_withdrawing_twice_keeps_the_first_reason(place, make):
    ref = place.publish(make())
    place.withdraw([ref.id], "erster")
    place.withdraw([ref.id], "zweiter")
    assert place.withdrawn()[ref.id].reason == "erster"


def test_what_is_cut_again_is_in_the_series_again(place, make):
    ref = place.publish(make())
    place.withdraw([ref.id], "why")
    assert place.publish(make()).id == ref.id
    assert [each.id for each in place.list()] == [ref.id]


def test_bad_input(place, make, tmp_path):
    ref = place.publish(make())
    with pytest.raises(SnapshotError, match="none of that id"):
        place.withdraw(["2020-02-00000000"], "why")
    with pytest.raises(SnapshotError, match="it is not withdrawn"):
        place.reinstate([ref.id])
    assert place.withdrawn() == {}


def test_a_note_that_was_written_by_hand_is_read(tmp_path, make):
    store = SnapshotStore(tmp_path)
    ref = store.publish(make())
    (tmp_path / NOTE).write_text(f'{{"{ref.id}": {{"at": "20261130T120000", "reason": 5}}}}')
    assert store.list() == []
    assert store.withdrawn()[ref.id].reason == "5"
    with pytest.raises(SnapshotError, match=r"withdrawn on 2026-11-30 \(5\)"):
        store.open(ref.id)
    store.reinstate([ref.id])
    assert [each.id for each in store.list()] == [ref.id]


def test_a_damaged_note_is_named(tmp_path, make):
    store = SnapshotStore(tmp_path)
    store.publish(make())
    (tmp_path / NOTE).write_text('{"2020-02-a": 3}')
    with pytest.raises(SnapshotError, match=r"withdrawn\.json cannot be read"):
        store.list()
