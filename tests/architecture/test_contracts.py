"""The walls of the house: rooms, dependencies, what loads what; `make check` holds contracts."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_room_of_the_map_exists_and_no_other() -> None:
    rooms = {path.parent.name for path in ROOT.glob("embedding/*/__init__.py")}
    named = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert rooms >= {"sources", "crawl", "text", "stream", "models", "exchange", "server"}
    assert [
        room for room in sorted(rooms) if f"`{room}" not in named and f"{room}/" not in named
    ] == []


def test_the_page_has_the_layers_in_their_order() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = re.search(r"^\| layers \|.*?\n\n", page, re.DOTALL | re.MULTILINE)
    assert table is not None
    first_cells = [line.split("|")[1] for line in table[0].splitlines()[2:] if line]
    shown = [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)]
    assert shown == [layer.removeprefix("embedding.") for layer in reversed(layers)]


def test_what_the_page_says_of_classes_is_in_the_code() -> None:
    """Of each `class NAME … # FILE` on the page: methods, and their parameters in order."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = re.findall(
        r"^class (\w+)[^\n]*# (embedding/\S+)\.py(.*?)(?=^\S|\Z)", page, re.DOTALL | re.MULTILINE
    )
    assert len(shown) >= 8
    for name, file, body in shown:
        found = getattr(import_module(file.replace("/", ".")), name)
        for method, parameters in re.findall(r"def (\w+)\(self,?(.*?)\)(?: ->|:)", body, re.DOTALL):
            known = list(inspect.signature(getattr(found, method)).parameters)
            wanted = re.findall(r"(?:^|,)\s*\**(\w+)(?=[:,=]|$)", parameters.strip())
            assert [each for each in wanted if each not in known] == [], f"{name}.{method}"


BY_STRING = {
    "kernel/registry.py": "reads registries",
    "worker/process/node.py": "a child process imports only what it runs",
    "text/kiwi.py": "a library that may be missing",
}
"""Modules of `embedding` that import by a string, which no import contract sees, and why."""


def test_imports_by_string_are_few_and_have_a_reason() -> None:
    root = ROOT / "embedding"
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"\b(import_module|__import__)\(", path.read_text(encoding="utf-8"))
    }
    assert found == set(BY_STRING)


def test_settings_load_no_heavy_library() -> None:
    code = (
        "import sys, embedding.cluster; "
        "print([m for m in ('torch', 'mlflow', 'airflow', 'trafilatura', 'numba') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == "[]"
