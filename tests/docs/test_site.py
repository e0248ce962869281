"""The site: pages that come from the code are up to date, and it builds without a warning."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_reference_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "infra/reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"run `python infra/reference.py`: {done.stdout}{done.stderr}"


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed (`make tools`)")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(https?:)?//")
    for page in tmp_path.rglob("*.html"):
        found = loaded.search(page.read_text(encoding="utf-8"))
        assert found is None, (page.name, found and found[0])


def test_every_result_that_a_figure_names_is_there() -> None:
    text = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    results = ROOT / "benchmarks" / "results"
    named = set(re.findall(r"`([a-z-]+)\.md`", text))
    assert named
    assert [name for name in sorted(named) if not (results / f"{name}.md").is_file()] == []


def test_every_page_of_the_tree_that_code_names_is_there() -> None:
    folders = ("embedding", "plugins", "neighbours", "dags", "infra", "benchmarks", "tests")
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            for page in re.findall(r"\bdocs/[\w/.-]+\.md\b", path.read_text(encoding="utf-8")):
                assert (ROOT / page).is_file(), (path, page)
