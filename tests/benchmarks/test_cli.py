"""What `yeoron bench` and `python -m benchmarks` offer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import found, main
from yeoron_bench.results import FIELDS, as_tables, command, keep

ROOT = Path(__file__).resolve().parents[2]


def test_measurements_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == set(found())
    assert all(len(line.split()) > 4 for line in lines)


def test_an_unknown_one_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speed"]) == 2
    assert capsys.readouterr().err.startswith("benchmarks speed: unknown; ")


def test_without_scrapy_the_crawl_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("yeoron_bench.results.find_spec", lambda _: None)
    assert main(["crawl", "generated"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("scrapy: not installed, and it is measured beside ours")
    assert told.count("\n") == 1


def test_the_package_measures_without_the_folder_of_benchmarks(tmp_path: Path) -> None:
    """As in an installed wheel: nothing of `yeoron bench` imports benchmarks."""
    code = (
        "import sys, importlib, pkgutil, yeoron_bench as bench\n"
        "sys.modules['benchmarks'] = None\n"
        "for each in pkgutil.iter_modules(bench.__path__):\n"
        "    importlib.import_module(f'yeoron_bench.{each.name}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_result_says_when_on_what_and_how(tmp_path: Path) -> None:
    report = {
        "bench": "some",
        "when": "2026-01-02T03:04:05+00:00",
        "tree": "yeoron 1",
        "hardware": {"cpu": "C", "cores": 2},
        "versions": {"numpy": "2"},
        "command": "yeoron bench some",
        "runs": [{"seed": 1, "loss": 0.5}, {"seed": 2, "loss": 0.25}],
    }
    path = keep(report, results=tmp_path / "kept", part="x")
    assert path.name == "some-2026-01-02T030405-x.md"
    assert path.with_suffix(".json").is_file()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == lines[6] == "---"
    assert [line.split(": ")[0] for line in lines[1:6]] == list(FIELDS)
    assert "| 2 | 0.25 |" in lines


def test_tables_of_nested_figures() -> None:
    text = as_tables({"a": 1, "b": {"c": 0.123456, "d": [{"e": None}]}})
    assert "| a | 1 |" in text
    assert "| c | 0.12346 |" in text
    assert "**b / d**" in text


def test_a_command_line_names_no_folder() -> None:
    given = ["/home/me/.venv/bin/yeoron", "bench", "train", "/data/news.txt", "--gold=/data/ws.tsv"]
    assert command(given) == "yeoron bench train news.txt --gold=ws.tsv"
    assert command(["/home/me/benchmarks/__main__.py", "mask"]) == "python -m benchmarks mask"
