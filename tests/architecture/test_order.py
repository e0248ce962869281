"""The order in which processes that share the suite take its files."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"


def test_long_files_come_early_and_quick_ones_last(pytestconfig: pytest.Config) -> None:
    dealt = pytestconfig.pluginmanager.get_plugin(str(CONFTEST)).dealt
    waiting = [[f"waits {at}"] for at in range(4)]
    others = [[f"computes {at}"] for at in range(10)]
    found = [one[0] for one in dealt(waiting, others)]
    assert found[:2] == ["waits 0", "computes 0"]
    assert found[-3:] == ["computes 7", "computes 8", "computes 9"]
    for kind, n in (("waits", 4), ("computes", 10)):
        assert [one for one in found if one.startswith(kind)] == [f"{kind} {at}" for at in range(n)]
    places = [at for at, one in enumerate(found) if one.startswith("waits")]
    assert all(after - before >= 3 for before, after in itertools.pairwise(places))
