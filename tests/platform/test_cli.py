"""The command line as a person meets it: help, errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from embedding.cli import app

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


def yeoron(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "embedding.cli", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


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
    tmp_path: Path, arguments: tuple[str, ...], part: str
) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    (tmp_path / "text.txt").write_text("one two three\n")
    (tmp_path / "store").mkdir()
    done = yeoron(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_sources_list_as_json_names_no_node_while_nobody_reads(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[[source]]\nname = "a"\nkind = "feed"\nurl = "https://example.org/rss"\n'
        '[[source]]\nname = "b"\nkind = "feed"\nurl = "https://example.org/atom"\n'
    )
    done = yeoron("sources", "list", "s.toml", "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)
    assert {row["name"]: row["node"] for row in rows} == {"a": None, "b": None}


def test_down_when_nothing_runs_says_so(tmp_path: Path) -> None:
    done = yeoron("down", cwd=tmp_path)
    assert done.returncode == 0
    assert "Nothing was running" in done.stdout


def test_the_planted_truth_is_printed(tmp_path: Path) -> None:
    done = yeoron("simweb", "--truth", cwd=tmp_path)
    assert json.loads(done.stdout)
