"""Result files: one schema, and no citation of a file that is not there."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from yeoron_bench.results import FIELDS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
CITED = re.compile(r"benchmarks/results/([\w*.-]*\w)")


def test_results_are_markdown_named_by_their_claim() -> None:
    wrong = [path.name for path in RESULTS.iterdir() if not re.fullmatch(r"[a-z-]+\.md", path.name)]
    assert wrong == [], "NAME.md, without a date: the file of a claim is its newest"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.md")), ids=lambda path: path.stem)
def test_a_result_says_when_on_what_and_how(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "---"
    end = lines.index("---", 1)
    front = dict(line.split(": ", 1) for line in lines[1:end])
    assert tuple(front) == FIELDS
    assert all(value.strip() for value in front.values())
    assert date.fromisoformat(front["date"])
    assert lines[end + 1 : end + 2] == [""]
    assert lines[end + 2].startswith("# ")


def cited() -> dict[str, list[str]]:
    """Names of result files in documents and code, with who names them."""
    found: dict[str, list[str]] = {}
    for folder in ("docs", "embedding", "plugins", "neighbours", "dags", "."):
        paths = ROOT.glob("*.md") if folder == "." else (ROOT / folder).rglob("*")
        for path in paths:
            if path.suffix not in {".md", ".py"} or "vendor" in path.parts:
                continue
            for name in CITED.findall(path.read_text(encoding="utf-8")):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def test_each_citation_is_of_a_file_that_is_there() -> None:
    there = {path.name for path in RESULTS.iterdir()}
    assert {name: who for name, who in cited().items() if name not in there} == {}


def test_modules_cite_decisions_and_no_results() -> None:
    modules = {who for several in cited().values() for who in several if who.endswith(".py")}
    assert modules == set()
