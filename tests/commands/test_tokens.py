"""`yeoron token`: what is printed, and where."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from embedding.cli import app
from embedding.kernel.errors import InputError


def run(*words: str):
    found = CliRunner().invoke(app, ["token", *words])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def test_a_token_is_printed_once_and_listed_without_it(tmp_path, monkeypatch):
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path))
    assert "dashboard" not in run("list").stdout
    token = run("make", "dashboard").stdout.strip()
    assert token.startswith("yeoron_")
    assert (tmp_path / "web-tokens.sqlite").is_file()
    rows = json.loads(run("list", "--json").stdout)
    assert [(row["name"], row["role"], row["withdrawn"]) for row in rows] == [
        ("dashboard", "reader", None)
    ]
    assert token not in run("list").stdout
    with pytest.raises(InputError, match="there are: dashboard"):
        run("withdraw", "other")
    assert run("withdraw", "dashboard").stdout.strip() == "dashboard: withdrawn."
    assert json.loads(run("list", "--json").stdout)[0]["withdrawn"]
