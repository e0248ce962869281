"""What is measured ends, or is ended with all that it started."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.start import measured
from embedding.kernel.errors import PlatformError
from waiting import until

HERE = Path(__file__).resolve().parents[2]
LEAVES_ONE = """
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path("pid").write_text(str(child.pid))
"""


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_processor_time_and_memory_of_a_process(tmp_path: Path) -> None:
    seconds, megabytes = measured([sys.executable, "-c", "sum(range(10**6))"], HERE, tmp_path)
    assert 0 < seconds < 60
    assert megabytes > 1


def test_a_process_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="it failed"):
        measured([sys.executable, "-c", "raise SystemExit(3)"], HERE, tmp_path)


def test_a_process_that_stays_behind_is_ended(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="had not ended after 5 s"):
        measured([sys.executable, "-c", LEAVES_ONE], HERE, tmp_path, limit_s=5)
    left = int((tmp_path / "pid").read_text())
    until(lambda: gone(left))
