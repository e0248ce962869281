"""What an idle platform uses is counted by process, ended children too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.idle import kind, main, usage
from embedding.platform.processes import mark


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/usr/lib/chromium/chromium", "--type=renderer", "--x"], "chromium renderer"),
        (["/usr/lib/chromium/chromium", "--headless"], "chromium browser"),
        (["node", "/a/playwright/driver/package/cli.js", "run-driver"], "playwright driver"),
        (["/v/bin/python", "-m", "embedding.text.pool_worker"], "embedding.text.pool_worker"),
        (["/v/bin/python", "-B", "-c", "x"], "python -B"),
    ],
)
def test_a_process_is_named_by_what_it_is(words: list[str], name: str) -> None:
    assert kind(words) == name


def test_processor_seconds_of_children_that_ended_count(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import time\\n"
        "while time.process_time() < 0.5: pass'])\n"
        "print('ended', flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "YEORON_PLATFORM": mark(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ended\n"
    [(spent, memory, n)] = usage(tmp_path).values()
    process.stdin.close()
    process.wait()
    process.stdout.close()
    # The kernel counts whole hundredths, of user and of system time, and rounds each down.
    assert spent > 0.45
    assert memory > 0
    assert n == 1


def test_a_folder_without_a_platform_is_one_sentence(tmp_path, capsys):
    assert main(["--home", str(tmp_path), "--seconds", "0.01"]) == 1
    assert capsys.readouterr().err == f"{tmp_path}: no process of a platform runs there.\n"
