"""What `yeoron train` refuses: one sentence, exit code 2, before anything is started."""

from __future__ import annotations

import importlib
import lzma
import os
from pathlib import Path
from types import ModuleType

import pytest

import embedding.training.checks as checks
import embedding.training.running as running
from embedding.text import tokenizers

PLAIN = "one two three\n" * 10
DATED = '{"date": "2020-02-03", "text": "one two"}\n'
FILES = {
    "text.txt": PLAIN.encode(),
    "empty.txt": b"",
    "binary.txt": b"\x89PNG\r\n\x1a\n\0\0\0",
    "latin.txt": PLAIN.encode() + "caf\xe9\n".encode("latin-1") * 10_000,
    "cut.txt.xz": lzma.compress(PLAIN.encode() * 100_000)[:-40],
    "binary.txt.xz": lzma.compress(b"a\0b\n"),
    "not.txt.xz": b"no such thing",
    "dated.jsonl": DATED.encode() * 20,
    "dated.json": DATED.encode() * 20,
    "undated.jsonl": b'{"text": "one two"}\n' * 20,
    "nothing.jsonl": b"one two\n[1]\n",
    "never.jsonl": DATED.replace("2020", "9999").encode(),
    "hours.jsonl": (
        DATED.replace("-03", "-03T08:30:00") + DATED.replace("-03", "-03T07:05:00")
    ).encode(),
    "basic.jsonl": (DATED.replace("-02-03", "0203") + DATED.replace("-02-03", "0103")).encode(),
    "zones.jsonl": (
        DATED.replace("-03", "-03T00:00:00+00:00") + DATED.replace("-03", "-03T05:00:00+09:00")
    ).encode(),
    "long.jsonl": DATED.replace("}", f', "source": "{"a" * 81}"}}').encode(),
    "bell.jsonl": DATED.replace("}", ', "source": "a\\u0007"}').encode(),
    "unsorted.jsonl": (DATED + DATED.replace("-02-", "-01-")).encode(),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bad files, in the folder that the command runs in."""
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.md").write_text("plan")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_server(*_: object) -> None:
    raise AssertionError("a server was started")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("missing.txt", ["missing.txt", "no such file"]),
        ("folder", ["folder", "is expected"]),
        ("empty.txt", ["empty.txt", "empty"]),
        ("binary.txt", ["binary.txt", "binary"]),
        ("binary.txt.xz", ["binary.txt.xz", "binary"]),
        ("not.txt.xz", ["not.txt.xz", "damaged"]),
        ("pipe", ["pipe", "not a regular file", "more than once"]),
        ("dated.json", ["dated.json", "JSON with a date and a text", ".jsonl"]),
        ("undated.jsonl", ["undated.jsonl", "date"]),
        ("never.jsonl --dated --window month", ["never.jsonl", "date"]),
        ("nothing.jsonl", ["nothing.jsonl", "date"]),
        ("undated.jsonl --dated --window day", ["undated.jsonl", "date"]),
        ("unsorted.jsonl --dated --window week", ["line 2", "2020-01-03", "2020-02-03", "sort"]),
        ("hours.jsonl --dated --window hour", ["line 2", "T07:05:00Z", "T08:30:00Z", "sort"]),
        ("basic.jsonl --dated --window month", ["line 2", "2020-01-03", "2020-02-03", "sort"]),
        ("zones.jsonl --dated --window day", ["line 2", "2020-02-02T20:00:00Z", "2020-02-03"]),
        ("long.jsonl --dated --window day", ["line 1", "source", "at most 80 characters"]),
        ("bell.jsonl --dated --window day", ["line 1", "source", "without control characters"]),
        ("dated.jsonl --dated --window day --sources -1", ["sources", "-1"]),
        ("text.txt --dated --window month", ["text.txt", "no dates", ".jsonl"]),
        ("dated.jsonl --dated", ["--dated", "--window hour, day, week, month"]),
        ("dated.jsonl --dated --window 5", ["--window 5", "month"]),
        ("dated.jsonl --dated --window month --epochs 2", ["epochs 2", "one pass"]),
        ("dated.jsonl --dated --window day --vocabulary counted", ["counted", "growing"]),
        ("dated.jsonl --dated month", ["month"]),
        ("text.txt --window month", ["--window month", "--dated"]),
        ("text.txt --window many", ["--window many", "month"]),
        ("text.txt --context many", ["--context", "valid integer"]),
        ("text.txt --context 5.5", ["--context", "valid integer"]),
        ("text.txt --context +-5", ["--context", "valid integer"]),
        (f"text.txt --context {'9' * 5000}", ["--context", "as an integer"]),
        ("dated.jsonl --dated --window day --window month", ["--window day --window month"]),
        ("text.txt --context 0", ["window", "0"]),
        ("text.txt --context -5", ["window", "-5"]),
        ("text.txt --context 1000000", ["window", "1000000"]),
        ("dated.jsonl --dated --window day --unit-lines 0", ["unit_lines", "0"]),
        ("dated.jsonl --dated --window day --rehearsal-passes -1", ["rehearsal_passes", "-1"]),
        ("dated.jsonl --dated --window day --rehearsal-passes nan", ["rehearsal_passes", "nan"]),
        ("dated.jsonl --dated --window day --rehearsal-passes 1001", ["rehearsal_passes", "1,000"]),
        ("text.txt --dim 0", ["dim", "0"]),
        ("text.txt --dim -1", ["dim", "-1"]),
        ("text.txt --dim 1000000000", ["dim", "1000000000"]),
        ("text.txt --dim many", ["--dim", "integer"]),
        ("text.txt --negative 0", ["negative", "0"]),
        ("text.txt --negative -5", ["negative", "-5"]),
        ("text.txt --negative 1000000", ["negative", "1000000"]),
        ("text.txt --sample 2", ["sample", "2"]),
        ("text.txt --epochs 0", ["epochs", "0"]),
        ("text.txt --min-count 0", ["min_count", "0"]),
        ("text.txt --max-words 0", ["max_words", "0"]),
        ("text.txt --tokens 0", ["tokens", "0"]),
        ("text.txt --learning-rate 0", ["learning_rate", "0"]),
        ("text.txt --learning-rate nan", ["learning_rate", "nan"]),
        ("text.txt --schedule steps", ["schedule", "steps", "linear"]),
        ("text.txt --seed -1", ["seed", "-1"]),
        ("text.txt --nodes 0", ["nodes", "0"]),
        ("text.txt --nodes 100000", ["nodes", "100000"]),
        ("text.txt --model bert", ["model", "bert", "sgns"]),
        ("text.txt --model sppmi --nodes 2", ["sppmi", "nodes", "sgns"]),
        ("text.txt --model sppmi --epochs 2", ["sppmi", "epochs"]),
        ("text.txt --model sppmi --sync bsp", ["sppmi", "sync"]),
        ("text.txt --model sppmi --state-dir state", ["sppmi", "state_dir"]),
        ("text.txt --model sppmi --vocabulary growing", ["sppmi", "growing", "counted"]),
        ("text.txt --tokenizer bpe", ["tokenizer", "bpe", "kiwi"]),
        ("text.txt --vocabulary wide", ["vocabulary", "wide", "growing"]),
        ("text.txt --device tpu", ["device", "tpu", "cpu"]),
        ("text.txt --trainer torch", ["--trainer is no option", "--device cuda --sync hogwild"]),
        ("text.txt --device cuda --sync hogwild --model glove", ["glove", "sgns", "cbow"]),
        ("text.txt --out text.txt", ["text.txt", "folder"]),
        ("text.txt --out text.txt/store", ["text.txt/store", "cannot be"]),
        ("text.txt --out notes", ["out notes", "holds plan.md already", "new or empty folder"]),
    ],
)
def test_it_is_refused_before_anything_starts(
    yeoron, monkeypatch: pytest.MonkeyPatch, folder: Path, arguments: str, parts: list[str]
) -> None:
    monkeypatch.setattr(running, "train", no_server)
    before = sorted(folder.rglob("*"))
    done = yeoron("train", *arguments.split())
    assert done.code == 2
    assert done.out == ""
    said = done.err.strip()
    assert "Traceback" not in said
    if "Usage:" not in said:  # an option that click itself cannot read comes in a frame
        assert len(said.splitlines()) == 1
    for part in parts:
        assert part in said
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("latin.txt", ["latin.txt", "line 11 is not UTF-8", "convert"]),
        ("cut.txt.xz", ["cut.txt.xz", "damaged"]),
        ("text.txt --sync gossip", ["gossip", "ssp"]),
    ],
)
def test_it_is_refused_before_a_node_starts(
    yeoron, monkeypatch: pytest.MonkeyPatch, folder: Path, arguments: str, parts: list[str]
) -> None:
    monkeypatch.setattr(running, "Run", no_server)
    done = yeoron("train", *arguments.split(), "--out", "store")
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1
    for part in parts:
        assert part in done.err
    assert not (folder / "store").exists()


def test_more_nodes_than_the_machine_can_run(yeoron, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "train", no_server)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    done = yeoron("train", "text.txt", "--nodes", "9")
    assert done.code == 2
    assert "nodes 9: this machine has 2 cores" in done.err
    assert "at most 8" in done.err


def test_tables_that_memory_cannot_hold(yeoron, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "train", no_server)
    monkeypatch.setattr(checks, "free_memory", lambda: 1 << 30)
    done = yeoron("train", "text.txt", "--dim", "65536")
    assert done.code == 2
    assert "dim 65536: with 1,024 words" in done.err
    assert "smaller dim" in done.err


def test_tables_of_the_words_that_were_counted(
    yeoron, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(running, "Run", no_server)
    monkeypatch.setattr(checks, "free_memory", lambda: 16 << 20)
    (folder / "many.txt").write_text("".join(f"word{n}\n" for n in range(5000)) * 5)
    done = yeoron("train", "many.txt", "--dim", "256")
    assert done.code == 2
    assert "with 5,000 words the tables take" in done.err


def test_mecab_that_is_not_installed(yeoron, monkeypatch: pytest.MonkeyPatch) -> None:
    load = importlib.import_module

    def missing(name: str) -> ModuleType:
        if "mecab" in name and not name.startswith("yeoron_lab"):
            raise ImportError(name)
        return load(name)

    monkeypatch.setattr(running, "train", no_server)
    monkeypatch.setattr("importlib.import_module", missing)
    assert tokenizers  # imported before its way to import is taken away
    done = yeoron("train", "text.txt", "--tokenizer", "mecab")
    assert done.code == 2
    assert "python-mecab-ko" in done.err


def test_a_place_that_is_read_only(yeoron, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def refused(**_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(running, "train", no_server)
    monkeypatch.setattr("tempfile.mkdtemp", refused)
    done = yeoron("train", "text.txt", "--out", "a/b")
    assert done.code == 2
    assert "out a/b: it cannot be written (Permission denied)" in done.err
    assert not (folder / "a").exists()
