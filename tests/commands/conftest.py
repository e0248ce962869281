"""The command line, called in this process or as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commandline import Done, Yeoron

sys.path.insert(0, str(Path(__file__).parent))

from calling import ENTRY, sentences


@pytest.fixture
def process(yeoron: Yeoron, monkeypatch: pytest.MonkeyPatch) -> Yeoron:
    """Call the command line in this process; the nodes of a training are processes all the same.

    What is about a process itself (signals, exit codes, imports) starts one: `own_process`.
    """

    def call(*arguments: object, cwd: Path | None = None) -> Done:
        with monkeypatch.context() as there:
            if cwd is not None:
                there.chdir(cwd)
            return yeoron(*arguments)

    return call


@pytest.fixture
def own_process() -> Yeoron:
    """Call the command line as a process of its own."""

    def call(*arguments: object, cwd: Path | None = None) -> Done:
        done = subprocess.run(
            [sys.executable, "-c", ENTRY, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=500,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plain text of 40,000 words."""
    path = tmp_path_factory.mktemp("corpus") / "plain.txt"
    path.write_text(sentences(40_000), encoding="utf-8")
    return path
