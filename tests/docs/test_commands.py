"""Every command on a page: run where the page says so, else held against the command line."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.__main__ import found
from embedding import cli

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "extending.md",
]
BLOCK = re.compile(r"(?:<!-- (run|file: (\S+)) -->\n)?^( *)```(\w*)\n(.*?)^\3```$", re.M | re.S)
TARGETS = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
FEWER = 12
"""Of a corpus that a page writes every n-th document is learnt, as tests have less time."""
ENVIRONMENT = {
    "YEORON_NODE__REHEARSAL_PASSES": "2",
    "YEORON_NODE__PAST_WINDOWS": "1",
    "YEORON_PATHS__SOURCES": "sources.toml",
}
COMMAND = typer.main.get_command(cli.app)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and lines, the file that it is, and whether it is run."""

    language: str
    text: str
    file: str | None
    run: bool

    def commands(self) -> list[str]:
        """Lines after a prompt, continued ones joined, without comments."""
        joined = self.text.replace("\\\n", " ")
        lines = [line.strip() for line in joined.splitlines()]
        return [line[2:] for line in lines if line.startswith("$ ")]


def blocks(page: Path) -> Iterator[Block]:
    for mark, file, _, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        yield Block(language, text, file or None, mark == "run")


def commands(page: Path) -> list[str]:
    """All of a page: after prompts, and those named inside of sentences."""
    text = page.read_text(encoding="utf-8")
    prompted = [line for block in blocks(page) for line in block.commands()]
    named = re.findall(r"(?<!`)`((?:yeoron|make|python -m) [^`…]+)`", BLOCK.sub("", text))
    return prompted + [line for line in named if "|" not in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_exists_with_its_options(page: Path) -> None:
    for line in commands(page):
        words = shlex.split(line, comments=True)
        for word in ("&&", "|"):
            words = words[: words.index(word)] if word in words else words
        if words[0] == "make":
            assert words[1] in TARGETS, line
        if words[:3] == ["python", "-m", "benchmarks"] and words[3:]:
            assert words[3] in [*found(), "NAME"], line
        if words[0] == "yeoron":
            exists(words[1:], line)


def exists(words: list[str], line: str) -> None:
    command: Any = COMMAND
    for word in words:
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        if word.startswith("-") and not re.fullmatch(r"-?\d+", word):
            assert word.partition("=")[0] in options | {"--help", "-h"}, (line, word)
        elif hasattr(command, "commands") and word in command.list_commands(None):
            command = command.get_command(None, word)
        elif hasattr(command, "commands"):
            assert words[words.index(word) - 1].startswith("--"), (line, word)


def run(page: Path) -> list[list[str]]:
    """The commands of a page that are run, as words."""
    lines = (line for block in blocks(page) if block.run for line in block.commands())
    return [shlex.split(line, comments=True) for line in lines]


def once(pages: list[Path]) -> list[Path]:
    """Pages with commands to run, but for those that only repeat what another page runs."""
    kept: list[Path] = []
    for page in sorted(pages, key=lambda page: -len(run(page))):
        known = [words for other in kept for words in run(other)]
        if any(words not in known for words in run(page)):
            kept.append(page)
    return kept


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", once(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_run_as_written(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    # It is for good, and this process has other tests to run.
    monkeypatch.setattr(cli, "leave_no_core", lambda: None)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
        for line in block.commands() if block.run else ():
            words = shlex.split(line, comments=True)
            assert words[0] == "yeoron", line
            monkeypatch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as left:
                cli.main()
            printed = capfd.readouterr()
            assert not left.value.code, (line, printed.out[-1000:], printed.err[-1000:])
            if "--write" in words:
                thin(Path(words[words.index("--write") + 1]))


def thin(corpus: Path) -> None:
    lines = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    assert all(json.loads(line)["text"] for line in lines)
    corpus.write_text("".join(lines[::FEWER]), encoding="utf-8")


def test_both_guides_of_the_analyst_have_the_same_commands() -> None:
    guide = ROOT / "docs" / "guide"
    english, korean = (
        [line for block in blocks(guide / name) for line in block.commands()]
        for name in ("analyst.md", "analyst.ko.md")
    )
    assert english == korean
