"""Finding snapshots."""

from __future__ import annotations

import pytest

from embedding.kernel.errors import InputError, SnapshotError


@pytest.fixture
def months(folder, make):
    january = folder.publish(make(month=1))
    february = folder.publish(make(month=2, parent=january.id))
    again = folder.publish(make(month=2, seed=7, parent=february.id))
    march = folder.publish(make(month=3, parent=again.id))
    return january, february, again, march


def test_series_has_the_last_cut_of_each_window(folder, months):
    january, _, again, march = months
    assert folder.series() == [january, again, march]


def test_by_window(folder, months):
    assert folder.require("2020-02") == months[2].id
    with pytest.raises(InputError, match=r"'2019-12': .* its last windows are 2020-01, 2020-02"):
        folder.require("2019-12")


def test_a_window_in_place_of_an_id_is_told_its_ids(folder, months):
    january = months[0]
    with pytest.raises(SnapshotError, match=f"none of that id in .*; {january.id} begins so"):
        folder.open(january.id.rpartition("-")[0])
    with pytest.raises(SnapshotError, match="snapshot list` names all"):
        folder.open("1999-01-00000000")


def test_empty(folder):
    with pytest.raises(InputError, match="no window"):
        folder.require("2020-02")
    assert folder.series() == []
