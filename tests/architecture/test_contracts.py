"""The walls of the house: import contracts, layout, size of files."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*ROOT.glob("embedding/**/*.py"), *ROOT.glob("plugins/**/*.py")])


def test_import_contracts_hold() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_every_room_of_the_map_exists_and_no_other() -> None:
    rooms = {path.parent.name for path in ROOT.glob("embedding/*/__init__.py")}
    named = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert rooms >= {"sources", "crawl", "text", "stream", "models", "exchange", "server"}
    assert [
        room for room in sorted(rooms) if f"`{room}" not in named and f"{room}/" not in named
    ] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_has_one_role_and_functions_fit_a_screen(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, node.name


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = (ROOT / "infra" / "constraints.txt").read_text(encoding="utf-8").lower()
    pinned = {line.split("==")[0].replace("_", "-") for line in pins.splitlines() if "==" in line}
    wanted = list(project["dependencies"])
    for name, extra in project["optional-dependencies"].items():
        wanted += extra if name != "all" else []
    names = {item.split("[")[0].strip().lower().replace("_", "-") for item in wanted}
    assert names - pinned == set()
    assert "torch==2.13.0" in pins.splitlines()


def test_settings_load_no_heavy_library() -> None:
    code = (
        "import sys, embedding.cluster; "
        "print([m for m in ('torch', 'mlflow', 'airflow', 'trafilatura', 'numba') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
