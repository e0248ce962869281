"""Tests import `embedding` through its seams; what they import beyond them becomes less."""

from __future__ import annotations

import ast
import sys

from budget import NAMES, table
from seams import imported, names_beyond, seams, within


def test_tests_import_no_more_names_beyond_the_seams() -> None:
    found, most = names_beyond(), table()[NAMES].most
    sys.stdout.write(f"\n{len(found):,} {NAMES}, {most:,} at most\n")
    assert len(found) <= most, (
        f"{len(found)} names beyond the seams, {most} at most: ask through a seam of "
        "tests/seams.txt; `python tests/seams.py` names those that are none"
    )


def test_a_name_is_a_seam_or_stands_in_a_module_that_is_one() -> None:
    allowed = seams()
    for name in ("embedding.cli.main", "embedding.web.config.WebConfig", "embedding.settings"):
        assert within(name, allowed), name
    for name in ("embedding.cli._LINE", "embedding.web.login.Login", "embedding.web"):
        assert not within(name, allowed), name


def test_what_is_imported_and_what_is_patched_is_found() -> None:
    text = """
import embedding.crawl.browser
from embedding.crawl import browser
def test(monkeypatch):
    from embedding.text.mask import mask
    monkeypatch.setattr("embedding.crawl.browser._UNUSED", 2)
    assert "embedding is a word"
"""
    assert imported(ast.parse(text)) == {
        "embedding.crawl.browser",
        "embedding.text.mask.mask",
        "embedding.crawl.browser._UNUSED",
    }
