"""Promises of the page on security name tests that are there, and say what they test."""

from __future__ import annotations

import re
from pathlib import Path

from embedding.platform.mlflow_app import mlflow_routes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "concepts" / "security.md").read_text(encoding="utf-8")


def test_each_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`([a-z]+/test_[a-z_]+)`", PAGE))
    assert len(named) > 8
    assert [name for name in sorted(named) if not (ROOT / "tests" / f"{name}.py").is_file()] == []


def test_the_number_of_mlflows_routes_is_right() -> None:
    unserved = (ROOT / "tests" / "platform" / "mlflow_unserved.txt").read_text().splitlines()
    all_of_them, served = re.search(r"some (\d+) routes.*?the (\d+) routes", PAGE, re.S).groups()
    assert round(len(unserved) + len(mlflow_routes()), -1) == int(all_of_them)
    assert round(len(mlflow_routes()), -1) == int(served)
