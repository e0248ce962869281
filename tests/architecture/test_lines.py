"""The product does not grow: what a change adds, it pays for."""

from __future__ import annotations

from pathlib import Path

import pytest

import budget
from budget import NAMES, Line, counted, lines_by_room, table

MOST = 77_481
"""Lines of `embedding/` since mechanisms of papers, with server groups and shards, left
for the laboratory (docs/adr/0043-laboratory.md). A change may add where it is needed, and removes
as much."""


def test_the_product_does_not_grow() -> None:
    lines = sum(n for room, n in lines_by_room().items() if room.startswith("embedding"))
    assert lines <= MOST


def test_no_room_grows_without_a_reason() -> None:
    now, lines, none = counted(), table(), Line(0)
    grown = [
        Line(n, "and behind it, why").written(name)
        for name, n in now.items()
        if n > lines.get(name, none).most
    ]
    assert not grown, "write in tests/budget.txt, in this commit:\n" + "\n".join(grown)


def test_what_there_is_stands_beside_what_may_be() -> None:
    lines = budget.report().splitlines()
    assert [line for line in lines if line.endswith("  embedding/server")]
    assert len(lines) == 1 + len(counted())


def test_the_table_is_lowered_to_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "TABLE", tmp_path / "budget.txt")
    now = counted()
    (some, n), *_ = now.most_common()
    budget.write({some: Line(n + 5, "because"), NAMES: Line(now[NAMES] - 1), "gone": Line(7)})
    budget.lower()
    lowered = table()
    assert lowered.keys() == now.keys()
    assert lowered[some] == Line(n, "because")
    assert lowered[NAMES].most == now[NAMES] - 1, "it does not raise what is too low"
