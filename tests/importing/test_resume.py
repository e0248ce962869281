"""An import that was killed goes on, and writes the same bytes as one that was not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from embedding.importing import importing
from embedding.importing.importing import ImportRequest, ImportResult, plan_import, run_import
from embedding.kernel.errors import InputError


class Killed(BaseException):
    """As a signal: nothing catches it."""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ...]:
    monkeypatch.setattr(importing, "_KEEP_S", 0.0)
    source = random.Random(1)
    paths = []
    for number in range(3):
        lines = ["date,text,author,source"]
        for at in range(60_000):
            day = source.randrange(1, 29)
            lines.append(f"2024-0{number + 1}-{day:02},말 {at} {'x' * 150} 끝,사람{at % 50},게시판")
            if at % 9_000 == 7:
                lines.append("broken")
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join(lines), encoding="utf-8")
        paths.append(path)
    return tuple(paths)


def call(files: tuple[Path, ...], out: Path, end: int | None = None) -> ImportResult:
    request = ImportRequest(files=files, out=out, key=b"key")
    calls = 0

    def show(share: float, records: int) -> None:
        nonlocal calls
        calls += 1
        assert 0 <= share <= 1
        if calls == end:
            raise Killed

    return run_import(request, plan_import(request), show)


def test_the_same_bytes_after_a_kill(files: tuple[Path, ...], tmp_path: Path) -> None:
    whole = call(files, tmp_path / "whole.jsonl")
    out = tmp_path / "corpus.jsonl"
    for _ in range(4):
        with pytest.raises(Killed):
            call(files, out, end=3)
        assert not out.exists()
    # What a kill may leave behind what counts does not.
    with (tmp_path / ".corpus.jsonl.part").open("ab") as part:
        part.write(b'{"date": "half a li')
    result = call(files, out)
    assert result.resumed > 0
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (result.records, result.wrong, result.examples, result.first, result.last) == (
        whole.records,
        whole.wrong,
        whole.examples,
        whole.first,
        whole.last,
    )
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_another_import_begins_anew(files: tuple[Path, ...], tmp_path: Path) -> None:
    out = tmp_path / "corpus.jsonl"
    with pytest.raises(Killed):
        call(files, out, end=3)
    result = call(files[:1], out)
    assert result.resumed == 0
    assert result.records == 60_000


def test_two_imports_into_one_file(files: tuple[Path, ...], tmp_path: Path) -> None:
    out = tmp_path / "corpus.jsonl"
    request = ImportRequest(files=files[:1], out=out)

    def show(share: float, records: int) -> None:
        with pytest.raises(InputError, match="another import is writing it"):
            call(files[:1], out)

    run_import(request, plan_import(request), show)
    assert out.exists()
