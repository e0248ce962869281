"""The log of a real run in JSON: server, shard and node under the supervisor's launcher."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from waiting import until
from yeoron_lab.ports import lasting_port

FORMAT_VARIABLE = "YEORON_LOG__FORMAT"
KEYS = ("time", "level", "process", "node", "window", "message", "fields")

MARKED = "감추어진글"


def launched(folder: Path, name: str, command: list[str], **environment: str) -> subprocess.Popen:
    file = folder / f"{name}.json"
    service = {
        "command": command,
        "environment": {FORMAT_VARIABLE: "json", "PYTHONUNBUFFERED": "1", **environment},
    }
    file.write_text(json.dumps({name: service}))
    log = (folder / f"{name}.log").open("wb")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "embedding.platform.launch", str(file), name],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ended(process: subprocess.Popen) -> int:
    """As the supervisor does it: the signal goes to the whole group."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        return process.wait(300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def complete(path: Path) -> list[dict]:
    """Once the child that writes them has ended, too."""
    found, before = lines(path), None
    while found != before:
        time.sleep(0.5)
        before, found = found, lines(path)
    return found


def in_schema(found: list[dict]) -> bool:
    return bool(found) and all(tuple(each) == KEYS for each in found)


def healthy(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.slow
def test_a_server_with_a_shard_logs_json_alone(tmp_path: Path) -> None:
    port, http = lasting_port("127.0.0.1"), lasting_port("127.0.0.1")
    home = tmp_path / "home"
    process = launched(
        tmp_path,
        "server",
        [sys.executable, "-m", "embedding.cli", "serve", "--shards", "1"],
        YEORON_PATHS__HOME=str(home),
        YEORON_SERVER__PORT=str(port),
        YEORON_SERVER__HTTP_PORT=str(http),
    )
    try:
        until(lambda: process.poll() is not None or healthy(http))
        secrets = [
            path.read_text().strip()
            for path in (home / "secrets").rglob("*")
            if path.is_file() and "token" in path.name
        ]
    finally:
        ended(process)
    found = complete(tmp_path / "server.log")
    assert in_schema(found)
    assert {each["process"] for each in found} >= {"server"}
    text = (tmp_path / "server.log").read_text(encoding="utf-8")
    assert secrets
    assert not any(secret in text for secret in secrets)


@pytest.mark.slow
def test_a_training_with_a_hostile_corpus_logs_json_and_no_text(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(f"{MARKED} 말 글 집\n" * 3_000, encoding="utf-8")
    process = launched(
        tmp_path,
        "train",
        [
            *(sys.executable, "-m", "embedding.cli", "train", str(corpus), "--nodes", "2"),
            *("--shards", "1", "--out", str(tmp_path / "store")),
        ],
        YEORON_PATHS__HOME=str(tmp_path / "home"),
    )
    try:
        assert process.wait(300) == 0
    finally:
        if process.poll() is None:
            ended(process)
    found = complete(tmp_path / "train.log")
    assert in_schema(found)
    assert MARKED not in (tmp_path / "train.log").read_text(encoding="utf-8")


def test_the_log_goes_on_until_the_last_of_a_services_processes_has_ended(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('WARNING: told to end'), os._exit(3)))\n"
        "print('ready')\n"
        "time.sleep(60)\n"
    )
    process = launched(tmp_path, "odd", [sys.executable, "-c", code])
    until((tmp_path / "odd.log").read_text)
    assert ended(process) == 3
    found = complete(tmp_path / "odd.log")
    assert [each["message"] for each in found] == ["ready", "WARNING: told to end"]
    assert [each["level"] for each in found] == ["info", "warning"]
