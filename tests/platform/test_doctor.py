"""`yeoron doctor`: each check where that one thing is broken, and where it is well."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from embedding.cli import app
from embedding.crawl.frontier import Frontier
from embedding.kernel.certificates import make_certificate
from embedding.kernel.errors import ConfigError
from embedding.kernel.ports import is_free
from embedding.platform.doctor import content, examining, machine, stores
from embedding.platform.doctor.diagnosis import Diagnosis, diagnose
from embedding.settings import PathsConfig, Settings, given_settings, load_settings
from embedding.text import kiwi
from embedding.text.config import TextConfig
from incomplete import incomplete_store

GB = 1024**3
ONE = '[[source]]\nname = "press"\nkind = "feed"\nurl = "https://a.example/rss"\ngroup = "news"\n'
RENDERED = ONE.replace('"feed"', '"rendered"').replace("press", "shop") + 'items = "li"\n'


def states(found) -> list[str]:
    return [one.state for one in found]


def said(found) -> str:
    return " ".join(f"{one.state}: {one.found} {one.advice}" for one in found)


def test_python():
    assert states(machine.check_python((3, 11), root=False)) == ["ok"]
    assert states(machine.check_python((3, 13), root=False)) == ["ok"]
    for version in ((3, 10), (3, 14), (2, 7)):
        assert states(machine.check_python(version, root=False)) == ["wrong"]
    assert states(machine.check_python((3, 12), root=True)) == ["ok", "warn"]


def test_packages():
    assert states(machine.check_packages({"platform": "`yeoron up`"})) == ["ok"]
    real = machine.find_spec
    for gone, extra in (("torch", "platform"), ("supervisor", "platform"), ("s3fs", "s3")):
        with patch.object(
            machine, "find_spec", lambda name, gone=gone: None if name == gone else real(name)
        ):
            found = list(machine.check_packages({extra: "What is wanted"}))
        assert "wrong" in states(found)
        assert gone in said(found)


def test_memory_and_swap():
    assert states(machine.check_memory(2, available=8 * GB, swap=0)) == ["ok"]
    assert states(machine.check_memory(2, available=4 * GB, swap=0)) == ["warn"]
    assert states(machine.check_memory(2, available=2 * GB, swap=0)) == ["wrong"]
    assert states(machine.check_memory(20, available=8 * GB, swap=GB)) == ["wrong", "warn"]


def test_shared_memory(tmp_path):
    assert states(machine.check_shared_memory(tmp_path / "none")) == ["warn"]
    small = type("Usage", (), {"free": 64 * 1024**2})()
    with patch.object(machine.shutil, "disk_usage", return_value=small):
        assert states(machine.check_shared_memory(tmp_path)) == ["wrong"]
    assert states(machine.check_shared_memory(tmp_path)) == ["ok"]


def test_limits():
    assert states(machine.check_limits(256)) == ["wrong"]
    assert states(machine.check_limits(4096)) == ["ok"]


@pytest.mark.parametrize(("free", "state"), [(GB // 2, "wrong"), (5 * GB, "warn"), (50 * GB, "ok")])
def test_disk(tmp_path, free: int, state: str):
    usage = type("Usage", (), {"free": free})()
    with patch.object(machine.shutil, "disk_usage", return_value=usage):
        assert states(machine.check_disk(tmp_path / "not" / "there")) == [state]
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written(tmp_path):
    full = OSError(28, "No space left on device")
    with patch.object(machine.tempfile, "NamedTemporaryFile", side_effect=full):
        found = list(machine.check_disk(tmp_path))
    assert states(found) == ["wrong"]
    assert "No space left" in said(found)


def test_ports():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        free = {port: is_free(port), 9: True}
        found = list(machine.check_ports({"ports.a": port, "ports.b": 9}, free, runs=False))
        assert states(found) == ["wrong"]
        assert f"Port {port} (ports.a) is taken by" in said(found)
        assert "YEORON_PORTS__A" in said(found)
        assert states(machine.check_ports({"ports.a": port}, free, runs=True)) == ["ok"]
    twice = list(machine.check_ports({"ports.a": 9, "ports.b": 9}, {9: True}, runs=False))
    assert states(twice) == ["wrong"]
    assert "set twice" in said(twice)


def test_clock(tmp_path):
    assert states(machine.check_clock(tmp_path)) == ["ok"]
    assert states(machine.check_clock(tmp_path, now=0.0)) == ["wrong"]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").touch()
    found = list(machine.check_clock(tmp_path, now=time.time() - 3600))
    assert states(found) == ["wrong"]
    assert "set back" in said(found)


def test_the_home_and_its_secrets(tmp_path):
    home = tmp_path / "home"
    assert states(stores.check_home(home)) == ["ok"]
    (home / "secrets").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    key = home / "secrets" / "dask-key.pem"
    key.touch(mode=0o600)
    assert states(stores.check_home(home)) == ["ok"]
    key.chmod(0o640)
    found = list(stores.check_home(home))
    assert states(found) == ["wrong"]
    assert "dask-key.pem" in said(found)
    key.chmod(0o600)
    with patch.object(stores.os, "geteuid", return_value=os.geteuid() + 1):
        assert "not of the user" in said(stores.check_home(home))
    (home / ".restoring").mkdir()
    (home / ".restoring" / "verified").touch()
    assert "was cut off" in said(stores.check_home(home))


def test_certificates(tmp_path):
    made, _ = make_certificate(tmp_path, "a", last=timedelta(days=90))
    now = datetime.now(UTC)
    check = stores.check_certificates
    assert states(check({})) == ["ok"]
    assert states(check({"Dask": made})) == ["ok"]
    assert states(check({"Dask": made}, now=now + timedelta(days=70))) == ["warn"]
    assert states(check({"Dask": made}, now=now + timedelta(days=100))) == ["wrong"]
    assert states(check({"Dask": made}, now=now - timedelta(days=100))) == ["wrong"]
    assert states(check({"Dask": tmp_path / "none.pem"})) == ["wrong"]
    (tmp_path / "junk.pem").write_text("junk")
    assert states(check({"Dask": tmp_path / "junk.pem"})) == ["wrong"]


def test_databases(tmp_path):
    file = tmp_path / "mlflow.db"
    address = f"sqlite:///{file}"
    assert states(stores.check_database("mlflow", address)) == ["ok"]
    assert not file.exists()
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE runs (id TEXT)")
        database.commit()
    assert states(stores.check_database("mlflow", address)) == ["ok"]
    with patch.object(stores.os, "access", return_value=False):
        assert "cannot be written" in said(stores.check_database("mlflow", address))
    file.write_bytes(b"junk" * 4096)
    assert states(stores.check_database("mlflow", address)) == ["wrong"]
    away = "postgresql+psycopg://nobody:hidden@127.0.0.1:1/x"
    with pytest.raises(ConfigError, match="cannot be used") as refused:
        list(stores.check_database("frontier", away))
    assert "hidden" not in str(refused.value)


def test_a_frontier_of_another_version(tmp_path):
    address = f"sqlite:///{tmp_path / 'yeoron.db'}"
    assert states(stores.check_frontier(address, exists=False)) == []
    Frontier(address).close()
    assert states(stores.check_frontier(address, exists=True)) == ["ok"]
    with closing(sqlite3.connect(tmp_path / "yeoron.db")) as database:
        database.execute("UPDATE frontier_schema SET version = 99")
        database.commit()
    with pytest.raises(ConfigError, match="version 99"):
        list(stores.check_frontier(address, exists=True))


def test_sources(tmp_path):
    file = tmp_path / "sources.toml"
    missing = list(content.check_sources(file, ()))
    assert states(missing) == ["wrong"]
    assert "yeoron init" in missing[0].advice
    assert states(content.check_browser(file, None)) == ["ok"]
    file.write_text(ONE, "utf-8")
    assert states(content.check_sources(file, ())) == ["ok"]
    assert states(content.check_sources(file, ("press",))) == ["ok", "warn"]
    file.write_text(ONE.replace("feed", "fed"), "utf-8")
    with pytest.raises(ConfigError, match="fed"):
        list(content.check_sources(file, ()))


def test_contact():
    assert states(content.check_contact("me (https://a.example)", reached=True)) == ["ok"]
    assert states(content.check_contact("me", reached=False)) == ["warn"]


def test_browser(tmp_path):
    file = tmp_path / "sources.toml"
    file.write_text(ONE, "utf-8")
    assert states(content.check_browser(file, None)) == ["ok"]
    assert states(content.check_browser(file, tmp_path / "none")) == ["wrong"]
    file.write_text(RENDERED, "utf-8")
    with patch.object(content, "find_chromium", return_value=None):
        found = list(content.check_browser(file, None))
    assert states(found) == ["wrong"]
    assert "shop" in said(found)
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o700)
    assert "ends with 127" in said(content.check_browser(file, broken))
    broken.write_text("#!/bin/sh\necho Chromium 1\n")
    assert states(content.check_browser(file, broken)) == ["ok"]


def test_tokenizer():
    assert states(content.check_tokenizer_runs(TextConfig(tokenizer="script"))) == ["ok"]
    long = TextConfig(tokenizer="script", min_length=30)
    assert states(content.check_tokenizer_runs(long)) in (["wrong"], ["ok"])
    with (
        patch.dict(kiwi._shared, clear=True),
        patch.object(kiwi.importlib, "import_module", side_effect=OSError("no model")),
    ):
        found = diagnose(
            {"tokenizer": lambda: content.check_tokenizer_runs(TextConfig(tokenizer="kiwi"))}
        )
    assert states(found) == ["wrong"]
    assert "Kiwi cannot be loaded (no model)" in found[0].found


def test_settings_that_mean_nothing(tmp_path, monkeypatch):
    file = tmp_path / "yeoron.toml"
    monkeypatch.setenv("YEORON_SETTINGS", str(file))
    file.write_text("[sync]\nstaleness = 3\n")
    assert states(examining.check_settings(load_settings(), given_settings())) == ["ok"]
    file.write_text('[sync]\npolicy = "bsp"\nstaleness = 3\n[notify]\nwords = ["말"]\n')
    monkeypatch.setenv("YEORON_SYNC__TAU", "3")
    found = list(examining.check_settings(load_settings(), given_settings()))
    assert states(found) == ["warn"] * 3
    assert f"{file}: [sync] staleness: it has no effect" in said(found)
    assert "YEORON_SYNC__TAU" in said(found)


def test_every_setting_that_is_looked_at_exists():
    for name in examining._IDLE:
        section, _, field = name.partition(".")
        assert field in type(getattr(Settings(), section)).model_fields, name


def test_a_check_that_breaks_ends_no_other():
    def broken():
        raise ZeroDivisionError("x")

    def refused():
        raise ConfigError("a sentence.")

    found = diagnose({"a": broken, "b": refused, "c": lambda: [Diagnosis("ok", "Well.")]})
    assert [(one.check, one.state) for one in found] == [
        ("a", "wrong"),
        ("b", "wrong"),
        ("c", "ok"),
    ]
    assert found[1].found == "a sentence."


def test_what_a_home_needs(tmp_path):
    file = tmp_path / "sources.toml"
    file.write_text(RENDERED, "utf-8")
    settings = Settings(paths=PathsConfig(home=tmp_path, sources=file))
    assert set(examining.needed_extras(settings)) == {"airflow", "mlflow", "platform", "render"}
    server = settings.server.model_copy(update={"snapshots": "s3://bucket/x"})
    text = TextConfig(tokenizer="mecab")
    other = settings.model_copy(update={"server": server, "text": text})
    assert {"s3", "mecab"} <= set(examining.needed_extras(other))
    settings.paths.secrets.mkdir()
    assert examining.certificates(settings) == {}
    make_certificate(settings.paths.secrets, "dask")
    assert set(examining.certificates(settings)) == {"Dask"}


def test_windows_that_lack_something(planted, tmp_path):
    whole = incomplete_store(tmp_path / "whole", planted, lacking=())
    assert states(stores.check_windows(whole.list())) == ["ok"]
    found = list(stores.check_windows(incomplete_store(tmp_path / "broken", planted).list()))
    assert states(found) == ["warn", "warn"]
    assert "2020-01: no word can be judged" in said(found)
    assert "yeoron snapshot amend" in said(found)
    assert states(stores.check_windows([])) == ["ok"]


def test_the_command(tmp_path, monkeypatch):
    file = tmp_path / "sources.toml"
    file.write_text(ONE, "utf-8")
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "home"))
    monkeypatch.setenv("YEORON_PATHS__SOURCES", str(file))
    monkeypatch.setenv("YEORON_TEXT__TOKENIZER", "script")
    run = CliRunner().invoke
    done = run(app, ["doctor", "--json"])
    found = {one["check"]: one for one in json.loads(done.output)}
    assert {"python", "disk", "ports", "home", "sources", "tokenizer", "windows"} <= set(found)
    assert not (tmp_path / "home").exists()
    monkeypatch.setenv("YEORON_PATHS__SOURCES", str(tmp_path / "none.toml"))
    shown = run(app, ["doctor"])
    assert shown.exit_code == 1
    assert "wrong" in shown.output
    monkeypatch.setenv("YEORON_SERVER__WINDOW", "century")
    broken = run(app, ["doctor", "--json"])
    assert broken.exit_code == 1
    first = json.loads(broken.output)[0]
    assert (first["check"], first["state"]) == ("settings", "wrong")
    assert "window" in first["found"]
