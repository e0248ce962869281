"""The command line as a person meets it: help, errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from commandline import Yeoron
from embedding.cli import app
from embedding.commands.panels import PANELS

RUNNER = CliRunner()
COMMANDS = [
    "up",
    "down",
    "demo",
    "status",
    "serve",
    "node",
    "web",
    "simweb",
    "crawl",
    "train",
    "evaluate",
    "export",
    "report",
    "mcp",
]
GROUPS = {
    "snapshot": ["list", "show", "verify", "neighbours"],
    "token": ["make", "list", "withdraw"],
    "trends": ["moved", "born", "risen", "word", "bias", "report"],
    "sources": ["list"],
    "bench": ["stream", "kernel", "train"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = RUNNER.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output


@pytest.mark.parametrize(("group", "command"), [(g, c) for g, cs in GROUPS.items() for c in cs])
def test_every_subcommand_has_help_with_an_example(group: str, command: str) -> None:
    result = RUNNER.invoke(app, [group, command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output


def test_help_shows_every_command_in_one_panel() -> None:
    top: Any = get_command(app)
    shown = [name for name in top.list_commands(None) if not top.commands[name].hidden]
    assert shown == [name for names in PANELS.values() for name in names]


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--settings", "nowhere.toml", "status"), "nowhere.toml"),
        (("sources", "list", "nowhere.toml"), "nowhere.toml"),
        (("snapshot", "show", "2020-02-ffff", "--snapshots", "store"), "2020-02-ffff"),
        (("train", "missing.txt"), "missing.txt"),
        (("train", "empty.txt"), "empty"),
        (("train", "binary.txt"), "binary"),
        (("train", "text.txt", "--dim", "0"), "dim"),
        (("serve", "--listen", "0.0.0.0:9"), "loopback"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    yeoron: Yeoron, tmp_path: Path, arguments: tuple[str, ...], part: str
) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    (tmp_path / "text.txt").write_text("one two three\n")
    (tmp_path / "store").mkdir()
    done = yeoron(*arguments)
    assert done.code == 2, done.err
    assert part in done.err
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_sources_list_as_json_names_no_node_while_nobody_reads(
    yeoron: Yeoron, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(
        '[[source]]\nname = "a"\nkind = "feed"\nurl = "https://example.org/rss"\n'
        '[[source]]\nname = "b"\nkind = "feed"\nurl = "https://example.org/atom"\n'
    )
    done = yeoron("sources", "list", "s.toml", "--json")
    rows = json.loads(done.out)
    assert {row["name"]: row["node"] for row in rows} == {"a": None, "b": None}


def test_down_when_nothing_runs_says_so(tmp_path: Path) -> None:
    """In a process of its own: exit code and output are those of the program."""
    done = subprocess.run(
        [sys.executable, "-m", "embedding.cli", "down"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0
    assert "Nothing was running" in done.stdout


def test_the_planted_truth_is_printed(yeoron: Yeoron) -> None:
    assert json.loads(yeoron("simweb", "--truth").out)
