"""`yeoron import`, and files of other kinds where a corpus is expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import embedding.training
from embedding.commands import importing
from embedding.training import TrainRequest

CSV = """등록일,본문,언론사
2024-02-01,둘째 글입니다,가
2024-01-01,첫째 글입니다,나
없음,셋째 글,나
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "posts.csv").write_text(CSV, encoding="cp949")
    return tmp_path


def test_the_columns_are_shown_and_what_was_left_out_is_said(yeoron: Any, folder: Path) -> None:
    done = yeoron("import", "posts.csv", "--yes")
    assert done.code == 0
    assert "2 records from 2024-01-01 to 2024-02-01, sorted by date" in done.out
    assert "yeoron train corpus.jsonl --dated --window month" in done.out
    assert "--out var/snapshots" in done.out  # where `yeoron trends` looks
    for said in ("등록일", "본문", "언론사", "posts.csv: record 3: '없음' is no date."):
        assert said in done.err
    lines = (folder / "corpus.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["source"] for line in lines] == ["나", "가"]


def test_nobody_has_looked_at_the_columns(yeoron: Any, folder: Path) -> None:
    done = yeoron("import", "posts.csv")
    assert done.code == 2
    assert "--yes takes them, --map FIELD=COLUMN names others." in done.err
    assert [each.name for each in folder.iterdir()] == ["posts.csv"]
    maps = ("--map", "date=등록일", "--map", "text=본문", "--map", "source=언론사")
    assert yeoron("import", "posts.csv", *maps, "-o", "b.jsonl").code == 0


def test_figures_for_programs(yeoron: Any) -> None:
    done = yeoron("import", "posts.csv", "--yes", "--json")
    told = json.loads(done.out)
    assert (told["records"], told["left_out"]) == (2, 1)
    assert told["wrong"] == {"no date that can be read": 1}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.csv"], "none.csv: no such file."),
        (["."], ".: a folder; name the files in it"),
        (["posts.csv", "--map", "when=등록일"], "--map when=등록일: FIELD=COLUMN is accepted"),
        (["posts.csv", "--map", "text=글"], "--map text=글: no such column; there are 등록일"),
        (["posts.csv", "-o", "posts.csv"], "posts.csv: is there already"),
    ],
)
def test_what_cannot_be_imported(yeoron: Any, arguments: list[str], sentence: str) -> None:
    done = yeoron("import", *arguments, "--yes")
    assert done.code == 2
    assert sentence in done.err


def test_a_training_reads_what_can_be_imported(
    yeoron: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def train(request: TrainRequest, show: object) -> None:
        read.extend(request.corpus.read_text("utf-8").splitlines())
        raise KeyboardInterrupt

    monkeypatch.setattr(embedding.training, "train_corpus", train)
    asked = ("train", "posts.csv", "--dated", "--window", "month")
    assert yeoron(*asked).code == 130
    assert len(read) == 2
    assert [each.name for each in folder.iterdir()] == ["posts.csv"]
    done = yeoron(*asked, "--state-dir", "state", "--out", "out")
    assert done.code == 2
    assert "`yeoron import posts.csv` makes one." in done.err


def test_the_demo_plays_what_can_be_imported(
    yeoron: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from yeoron_demo import commands, demo

    played: list[Path] = []

    def run(settings: object, corpus: Path, *_: object) -> int:
        played.append(corpus)
        return 0

    monkeypatch.setattr(demo, "run_demo", run)
    monkeypatch.setattr(commands, "keep_private", lambda: None)
    for _ in range(2):
        assert yeoron("demo", "--corpus", "posts.csv").code == 0
    assert len(played[0].read_text("utf-8").splitlines()) == 2
    assert yeoron("demo", "--corpus", "generated").code == 0
    assert played[-1] == Path("generated")


def test_what_is_read_as_it_is(folder: Path) -> None:
    for name in ("a.jsonl", "a.jsonl.xz", "a.txt", "generated"):
        assert importing.is_corpus(Path(name))
    assert importing.is_corpus(folder)
    for name in ("a.csv", "a.jsonl.gz", "a.xlsx", "a.csv.xz"):
        assert not importing.is_corpus(Path(name))
