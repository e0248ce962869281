"""Promises of the pages on security and privacy name tests, and these are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from embedding.platform.mlflow_app import mlflow_routes

ROOT = Path(__file__).resolve().parents[2]
CONCEPTS = ROOT / "docs" / "concepts"
TEST = re.compile(r"`(?:tests/)?((?:[a-z]+/)+test_[a-z_0-9]+)(?:\.py)?(?:::(test_[a-z_0-9]+))?`")


def page(name: str) -> str:
    return (CONCEPTS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["security", "privacy"])
def test_each_test_that_is_named_exists(name: str) -> None:
    found = TEST.findall(page(name))
    assert len(found) > 10
    for file, function in found:
        source = (ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8")
        assert not function or f"def {function}(" in source, f"{file}::{function}"


@pytest.mark.parametrize("name", ["security", "privacy"])
def test_each_promise_names_a_test(name: str) -> None:
    table = page(name).partition("## Held by tests")[2]
    rows = [line.strip("|").rpartition("|") for line in table.splitlines() if line[:1] == "|"][2:]
    assert len(rows) > 10
    assert [
        promise for promise, _, test in rows if not (TEST.search(test) or "the same" in test)
    ] == []


def test_the_number_of_mlflows_routes_is_right() -> None:
    unserved = (ROOT / "tests" / "platform" / "mlflow_unserved.txt").read_text().splitlines()
    all_of_them, served = re.search(
        r"some (\d+) routes.*?the (\d+) routes", page("security"), re.S
    ).groups()
    assert round(len(unserved) + len(mlflow_routes()), -1) == int(all_of_them)
    assert round(len(mlflow_routes()), -1) == int(served)
