"""Long tests of the laboratory run again once it has changed (tests/laboratory.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

import laboratory

TESTS = Path(laboratory.__file__).parent
MARK = "mark.laboratory"


def watched() -> set[Path]:
    return {path for place in laboratory.PLACES for path in laboratory.ROOT.glob(place)}


def test_every_file_with_such_a_test_is_watched() -> None:
    marked = {path for path in TESTS.rglob("test_*.py") if MARK in path.read_text("utf-8")}
    assert marked - {Path(__file__)} <= watched()


def test_every_file_of_the_laboratory_is_watched() -> None:
    assert {*(laboratory.ROOT / "neighbours/yeoron_lab").rglob("*.py")} <= watched()


@pytest.mark.parametrize("change", ["content", "name"])
def test_a_change_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    file = tmp_path / "neighbours/yeoron_lab/groups/a.py"
    file.parent.mkdir(parents=True)
    file.write_text("1")
    monkeypatch.setattr(laboratory, "ROOT", tmp_path)
    monkeypatch.setattr(laboratory, "PASSED", tmp_path / "passed.txt")
    (tmp_path / "passed.txt").write_text(f"{laboratory.digest()}\n")
    assert laboratory.unchanged()
    if change == "content":
        file.write_text("2")
    else:
        file.rename(file.with_name("b.py"))
    assert not laboratory.unchanged()
