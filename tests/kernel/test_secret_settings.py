"""Secrets of settings are shown nowhere: in no representation, dump, message or command."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from embedding.cli import app
from embedding.crawl.fetcher import Request
from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.errors import ConfigError
from embedding.settings import Settings, given_settings, load_settings
from embedding.sources.config import SourceConfig, load_sources, source_table
from embedding.worker.spec import NodeSpec

SECRET = "OPERATORS-SECRET"
SETTINGS = f"""
[crawl]
frontier = "postgresql://me:{SECRET}@db/f"
pseudonym_key = "{SECRET}"
[evaluation]
tracking_uri = "https://me:{SECRET}@mlflow.example"
[notify]
webhook = "https://hooks.example/{SECRET}"
smtp_password = "{SECRET}"
"""
SOURCES = f"""
[[source]]
name = "board"
kind = "feed"
url = "https://board.example/feed"
proxy = "http://me:{SECRET}@proxy.example:3128"
cookies = {{ session = "{SECRET}" }}
"""


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    file = tmp_path / "yeoron.toml"
    file.write_text(SETTINGS, encoding="utf-8")
    return file


@pytest.fixture
def source(tmp_path: Path) -> SourceConfig:
    file = tmp_path / "sources.toml"
    file.write_text(SOURCES, encoding="utf-8")
    return load_sources(file)[0]


def ways_to_show(value: Any) -> str:
    return "\n".join((repr(value), str(value), f"{value}", "%s %r" % (value, value)))  # noqa: UP031


def test_settings_and_sources_show_no_secret(settings_file: Path, source: SourceConfig) -> None:
    settings = load_settings(settings_file)
    spec = NodeSpec(name="n", server="grpc://x:1", sources=(source,), crawl=settings.crawl)
    for one in (settings, settings.crawl, settings.notify, settings.evaluation, source, spec):
        assert SECRET not in ways_to_show(one)
        assert SECRET not in one.model_dump_json()
        assert SECRET not in repr(one.model_dump())
        assert SECRET not in json.dumps(one.model_dump(mode="json"))
    assert SECRET not in repr(given_settings(settings_file))


def test_who_needs_a_secret_has_it(settings_file: Path, source: SourceConfig) -> None:
    settings = load_settings(settings_file)
    spec = NodeSpec(name="n", server="grpc://x:1", sources=(source,), crawl=settings.crawl)
    read = NodeSpec.model_validate_json(spec.model_dump_json(context=WITH_SECRETS))
    assert read == spec
    assert read.sources[0].cookie_values == {"session": SECRET}
    assert read.sources[0].proxy_address == f"http://me:{SECRET}@proxy.example:3128"
    assert source_table(source).count(SECRET) == 2, "a file that is written anew keeps them"


def test_a_request_that_is_logged_shows_no_cookie(caplog: pytest.LogCaptureFixture) -> None:
    request = Request(
        "https://board.example/feed",
        proxy=f"http://me:{SECRET}@proxy.example:3128",
        cookies={"session": SECRET},
    )
    logging.getLogger("embedding").warning("failed: %s %r", request, request)
    assert SECRET not in caplog.text


def test_the_list_of_sources_for_programs_shows_no_cookie(
    tmp_path: Path, source: SourceConfig, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "home"))
    app(["sources", "list", str(tmp_path / "sources.toml"), "--json"], standalone_mode=False)
    shown = capsys.readouterr()
    assert '"name": "board"' in shown.out
    assert SECRET not in shown.out + shown.err


WRONG: list[tuple[Callable[[Path], object], str]] = [
    (load_settings, f'[notify]\nwebhook = "ftp://hooks.example/{SECRET}"'),
    (load_settings, f'[notify]\nsmtp_password = ["{SECRET}"]'),
    (load_settings, f'[crawl]\npseudonym_key = {{ a = "{SECRET}" }}'),
    (load_settings, f'[crawl]\nfrontier = ["{SECRET}"]'),
    (load_sources, SOURCES.replace("http://me", "socks://me")),
    (load_sources, SOURCES.replace("session =", 'other = "a;b", session =').replace(SECRET, "x")),
    (load_sources, SOURCES.replace(f'session = "{SECRET}"', f'session = "{SECRET};b"')),
    (load_sources, SOURCES.replace(f'session = "{SECRET}"', f'session = ["{SECRET}"]')),
]


@pytest.mark.parametrize(("read", "text"), WRONG)
def test_a_message_about_a_wrong_secret_does_not_repeat_it(
    tmp_path: Path, read: Callable[[Path], object], text: str
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read(file)
    assert SECRET not in str(error.value)
    assert "a;b" not in str(error.value)
    assert str(file) in str(error.value)


def test_other_values_are_repeated(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text("[crawl]\nrate = -1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"crawl\.rate: .*, got -1"):
        load_settings(file)
    assert Settings().notify.webhook.get_secret_value() == ""
