"""`yeoron init` against a real site on loopback."""

from __future__ import annotations

import io
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from embedding.settings import FIRST_SETTINGS, load_settings
from embedding.sources.config import load_sources
from yeoron_simweb.testing import running


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with running() as base:
        yield base


@pytest.fixture(autouse=True)
def folder(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    host = urlsplit(site).netloc
    monkeypatch.setenv("YEORON_CRAWL__ALLOW_PRIVATE_HOSTS", f'["{host}"]')
    monkeypatch.setenv("YEORON_CRAWL__RATE", "200")
    monkeypatch.setenv("YEORON_CRAWL__EXTRACT_PROCESSES", "0")
    return tmp_path


def options(site: str, /, **more: str) -> list[str]:
    given = {"name": "news", "site": site, "language": "ko", "window": "week", "home": "data"}
    return [f"--{name}={value}" for name, value in {**given, **more}.items()]


def test_the_file_names_what_else_most_installations_set(
    yeoron: Any, site: str, folder: Path
) -> None:
    assert yeoron("init", *options(site)).code == 0
    written = folder / "yeoron.toml"
    text = written.read_text(encoding="utf-8")
    assert "# cluster.nodes = 2\n" in text
    assert "# notify.email_to = []\n" in text
    before = load_settings()
    written.write_text(
        "\n".join(
            line.removeprefix("# ") if re.match(r"# \w+\.\w+ = ", line) else line
            for line in text.splitlines()
        ),
        encoding="utf-8",
    )
    assert load_settings().model_dump() == before.model_dump()


def test_the_first_settings_are_few() -> None:
    assert len(FIRST_SETTINGS) <= 15
    assert len(set(FIRST_SETTINGS)) == len(FIRST_SETTINGS)


def test_all_is_given_on_the_command_line(yeoron: Any, site: str, folder: Path) -> None:
    done = yeoron("init", *options(site, contact="me@example.org"))
    assert done.code == 0, done.err
    (source,) = load_sources(folder / "sources.toml")
    assert source.kind == "feed"
    assert source.url.startswith(site)
    assert source.language == "ko"
    chosen = load_settings()
    assert chosen.paths.sources == Path("sources.toml")
    assert chosen.paths.home == Path("data")
    assert (chosen.server.window, chosen.server.timezone) == ("week", "Asia/Seoul")
    assert chosen.crawl.user_agent == "Yeoron/0.1 (news; me@example.org)"
    before = (folder / "sources.toml").read_bytes()
    (folder / "yeoron.toml").unlink()
    again = yeoron("init", *options(site))
    assert again.code == 2
    assert "sources.toml: is there already and is not written over" in again.err
    assert (folder / "sources.toml").read_bytes() == before
    assert not (folder / "yeoron.toml").exists()


def test_questions_are_asked_again_until_an_answer_can_be_taken(
    yeoron: Any, site: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["two words", "news", "ftp://a", site, "", "Korean", "mixed", "year", "month", ""]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(said) + "\n"))
    done = yeoron("init")
    assert done.code == 0, done.err
    for sentence in (
        "name 'two words'",
        "ftp://a: an http or https address is accepted",
        "language 'Korean'",
        "window: Input should be 'hour', 'day', 'week' or 'month', got 'year'",
    ):
        assert sentence in done.err
    assert load_sources(folder / "sources.toml")[0].language is None
    assert (load_settings().server.window, load_settings().server.timezone) == ("month", "UTC")


def test_nobody_is_there_to_answer(
    yeoron: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    done = yeoron("init")
    assert done.code == 2
    assert "nobody answers; give --name, --site, --language, --window and --home." in done.err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"name": "a b"}, "name 'a b': at most 40 letters"),
        (
            {"window": "year"},
            "init: window: Input should be 'hour', 'day', 'week' or 'month', got 'year'.",
        ),
        ({"tokenizer": "none"}, "tokenizer 'none': one of kiwi"),
        ({"home": "/dev/null/x"}, "/dev/null/x: /dev/null cannot be written"),
        ({"site": "http://{closed}/"}, "cannot be reached"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(
    yeoron: Any, site: str, folder: Path, more: dict[str, str], sentence: str
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{free.getsockname()[1]}"
    more = {name: value.replace("{closed}", closed) for name, value in more.items()}
    done = yeoron("init", *options(site, **more))
    assert done.code == 2
    assert sentence in done.err
    assert list(folder.iterdir()) == []


def test_the_help_says_which_windows_there_are_and_that_a_group_follows_a_leader(
    yeoron: Any,
) -> None:
    def shown(command: str) -> str:
        return " ".join(re.sub("[│─]", " ", yeoron(command, "--help").out).split())

    assert "hour, day, week or month" in shown("init")
    assert "only with leader (--leader)" in shown("serve")
