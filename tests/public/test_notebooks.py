"""The notebooks run from their first to their last cell, and show what they say."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from syntax import syntax_of

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def run(path: Path) -> dict[str, Any]:
    """The names that the cells leave, with `_` as what the last line of the last cell gave."""
    names: dict[str, Any] = {"__name__": "notebook", "shown": []}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = syntax_of("".join(cell["source"]), str(path))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
            names["shown"].append(value)
            assert repr(value)
    return names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_there_are_four_without_outputs() -> None:
    assert len(NOTEBOOKS) == 4
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            assert cell.get("outputs", []) == []


@pytest.mark.slow
def test_a_first_look_finds_what_was_planted() -> None:
    left = run(NOTEBOOKS[0])
    called = [row["word"] for row in left["moved"] if row["significant"]]
    # What is cooked stands beside the new word, so its company changed, too.
    cooking = next(words for words in left["TOPICS"].values() if "garlic" in words)
    assert called[0] == "compass"
    assert set(called[1:]) <= set(cooking)
    born = [row["word"] for row in left["store"].born("2024-05") if row["significant"]]
    assert born == ["airfryer"]
    row = left["moved"][0]
    assert set(row["neighbours_before"]) <= set(left["TOPICS"]["mountain"])
    assert set(row["neighbours"]) <= set(left["TOPICS"]["traffic"])


@pytest.mark.slow
def test_a_corpus_of_ones_own_gives_the_same_findings() -> None:
    left = run(NOTEBOOKS[1])
    assert left["scores"].iloc[0]["word"] == "compass"


@pytest.mark.slow
def test_sources_are_compared() -> None:
    left = run(NOTEBOOKS[2])
    contrast = left["shown"][1]
    assert [row["word"] for row in contrast if row["significant"]] == ["compass"]


@pytest.mark.slow
def test_research_on_meaning() -> None:
    left = run(NOTEBOOKS[3])
    assert left["scores"].iloc[0]["word"] == "compass"
    assert set(left["shown"][-1]) == {"compass", "summit", "bus"}
