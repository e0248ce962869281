"""While it trains, a training answers nobody but its own nodes, although its ports are reached."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow.flight as flight
import pytest
from calling import ENTRY

from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("봄 여름 가을 겨울 꽃 비 눈 바람\n" * 3_000, encoding="utf-8")
    return path


def doors(pid: int) -> set[int]:
    """Ports at which a process and its children listen."""
    found = set()
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            found |= {
                each.laddr.port
                for each in process.net_connections(kind="inet")
                if each.status == psutil.CONN_LISTEN
            }
    return found


def answer(port: int) -> str:
    """What somebody without a token is told there: "refused", "none", or "open"."""
    client = flight.connect(f"grpc://127.0.0.1:{port}")
    options = flight.FlightCallOptions(timeout=20)
    try:
        list(client.do_action(flight.Action("ping", b"{}"), options))
    except flight.FlightUnauthenticatedError:
        return "refused"
    except (flight.FlightError, OSError):
        return "none"
    finally:
        client.close()
    return "open"


@pytest.mark.parametrize(
    ("options", "services"),
    [
        (("--shards", "2"), 3),
        (("--aggregators", "1"), 2),
        pytest.param(("--server-groups", "2"), 2, marks=pytest.mark.laboratory),
        pytest.param(("--topology", "allreduce"), 1, marks=pytest.mark.laboratory),
    ],
)
def test_nobody_without_its_token_is_answered(
    text: Path, tmp_path: Path, options: tuple[str, ...], services: int
) -> None:
    """The server, its shards, aggregators, and groups that follow."""
    command = [sys.executable, "-c", ENTRY, "train", str(text), "--out", str(tmp_path / "store")]
    command += ["--nodes", "2", "--epochs", "1000", "--dim", "16", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        found: dict[int, str] = {}

        def refusing() -> bool:
            assert running.poll() is None, (running.stdout or sys.stdin).read()
            found.update({port: answer(port) for port in doors(running.pid)})
            return list(found.values()).count("refused") >= services

        try:
            until(refusing, lambda: str(found))
            assert "open" not in found.values()
        finally:
            for child in psutil.Process(running.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
            running.kill()
