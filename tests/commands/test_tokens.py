"""`yeoron token` and `yeoron account`: what is printed, and where."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from embedding.cli import app
from embedding.kernel.errors import InputError


def run(*words: str, of: str = "token"):
    found = CliRunner().invoke(app, [of, *words])
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


def test_an_account_has_a_role_and_a_password_that_is_printed_once(tmp_path, monkeypatch):
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path))
    password = run("add", "가람", "--role", "analyst", of="account").stdout.strip()
    assert len(password) > 40
    path = tmp_path / "accounts.sqlite"
    assert path.stat().st_mode & 0o777 == 0o600
    assert password.encode() not in path.read_bytes()
    run("add", "나래", of="account")
    rows = json.loads(run("list", "--json", of="account").stdout)
    assert [(row["name"], row["role"]) for row in rows] == [("가람", "analyst"), ("나래", "reader")]
    for name, role, sentence in (
        ("다솜", "root", "reader, analyst, operator are accepted"),
        ("a:b", "reader", "without a colon"),
        ("가람", "reader", "there is one of this name"),
        (" ", "reader", "1 to 80"),
    ):
        with pytest.raises(InputError, match=sentence):
            run("add", name, "--role", role, of="account")
    assert run("withdraw", "가람", of="account").stdout.strip() == "가람: withdrawn."
    assert json.loads(run("list", "--json").stdout) == [], "accounts are no tokens"
