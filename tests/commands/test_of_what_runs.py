"""Commands speak of the platform that runs, and say so; they find it by its supervisor's files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from embedding.commands.status_tables import figure_table
from embedding.kernel.ports import address_of, listen_on
from embedding.platform.processes import running_platform
from waiting import until


@pytest.fixture
def supervisor() -> Iterator[int]:
    """Process id of something that a supervisor's command line looks like."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(300)", "supervisord"]
    )
    # A process that has just begun has no command line yet.
    until(lambda: "supervisord" in psutil.Process(process.pid).cmdline(), "it did not begin")
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without settings, which commands may change for this test alone."""
    monkeypatch.chdir(tmp_path)
    # Set before they are deleted, so that what a command leaves behind is taken back.
    for name in ("YEORON_SETTINGS", "YEORON_PATHS__HOME"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    return tmp_path


def runs(home: Path, pid: int, **environment: str) -> None:
    """Write what a supervisor leaves in a home."""
    run = home / "run"
    run.mkdir(parents=True)
    (run / "supervisord.pid").write_text(f"{pid}\n")
    given = {**environment, "YEORON_PLATFORM": str(home), "PATH": "/bin"}
    (run / "services.json").write_text(json.dumps({"server": {"environment": given}}))


def demo(place: Path, pid: int) -> Path:
    """A demo that runs below `place`."""
    home = place / "var" / "demo"
    runs(home, pid, YEORON_SETTINGS=str(home / "settings.toml"))
    sources = home / "sources.toml"
    sources.write_text(
        '[[source]]\nname = "sim-board"\nkind = "feed"\nurl = "http://127.0.0.1:9/"\n'
    )
    (home / "settings.toml").write_text(
        f'[paths]\nhome = "{home}"\nsources = "{sources}"\n'
        '[crawl]\nallow_private_hosts = ["127.0.0.1:9"]\nextract_processes = 0\n'
        '[text]\ntokenizer = "whitespace"\n'
    )
    return home


def test_nothing_runs_where_no_file_says_so(tmp_path: Path, supervisor: int) -> None:
    assert running_platform(tmp_path) is None
    runs(tmp_path, 2**22 + 7)
    assert running_platform(tmp_path) is None, "its process has gone"
    runs(tmp_path / "demo", supervisor, YEORON_SETTINGS="/there/settings.toml")
    found = running_platform(tmp_path)
    assert found is not None
    assert (found.name, found.home) == ("demo", tmp_path / "demo")
    assert found.environment == {"YEORON_SETTINGS": "/there/settings.toml"}
    (tmp_path / "demo" / "run" / "services.json").write_text("cut o")
    assert running_platform(tmp_path).environment == {}


def test_right_after_the_demo_trends_and_snapshots_are_its_own(
    place: Path, supervisor: int, yeoron: Any, planted: Any
) -> None:
    home = demo(place, supervisor)
    store = planted.make_store(str(home / "snapshots"), planted.Plan(windows=4, fillers=100))
    for arguments in (("trends", "moved"), ("snapshot", "list")):
        done = yeoron(*arguments, *(("--json",) if arguments[0] == "trends" else ()))
        assert done.code == 0
        assert (store.list()[-1].id in done.out) or ("코로나" in done.out)
    again = yeoron("trends", "moved", "--json")
    assert json.loads(again.out)["rows"][0]["word"] == "코로나"


def test_one_line_says_which_platform_is_spoken_of(
    place: Path, supervisor: int, yeoron: Any
) -> None:
    demo(place, supervisor)
    done = yeoron("sources", "list", "--json")
    assert [row["name"] for row in json.loads(done.out)] == ["sim-board"]
    assert done.err.splitlines()[0] == "yeoron: of the demo that runs in var/demo."


def test_it_is_said_once_however_often_a_command_asks(
    place: Path, supervisor: int, yeoron: Any, planted: Any
) -> None:
    home = demo(place, supervisor)
    planted.make_store(str(home / "snapshots"), planted.Plan(windows=3, fillers=60))
    done = yeoron("trends", "stories")
    assert done.code == 0
    assert done.err.count("the demo that runs") == 1


def test_a_store_or_a_settings_file_that_is_named_is_what_is_spoken_of(
    place: Path, supervisor: int, yeoron: Any, planted: Any
) -> None:
    demo(place, supervisor)
    planted.make_store(str(place / "mine"), planted.Plan(windows=3, fillers=60))
    done = yeoron("snapshot", "list", "--snapshots", place / "mine")
    assert (done.code, done.err) == (0, "")
    own = place / "own.toml"
    own.write_text(f'[paths]\nhome = "{place / "var"}"\n')
    done = yeoron("--settings", own, "snapshot", "list")
    assert "demo" not in done.err


def test_a_platform_of_its_own_home_is_found_from_elsewhere(
    place: Path, supervisor: int, yeoron: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = place / "elsewhere"
    runs(home, supervisor)
    monkeypatch.setenv("YEORON_PATHS__HOME", str(home))
    done = yeoron("trends", "moved")
    assert str(home / "snapshots") in done.err
    assert done.err.startswith(f"yeoron: of the platform that runs in {home}.")


def test_a_bare_crawl_refuses_the_example_list_and_names_what_it_reads(
    place: Path, supervisor: int, yeoron: Any
) -> None:
    done = yeoron("crawl", "--for", "1")
    assert done.code == 2
    assert "names sites of others" in done.err
    assert done.out == ""
    demo(place, supervisor)
    done = yeoron("crawl", "--for", "1", "--json")
    assert done.code == 0
    said = done.err.splitlines()
    assert said[0] == "yeoron: of the demo that runs in var/demo."
    assert said[1].startswith("yeoron: reading 1 source of ")
    assert said[1].endswith("for 1 s: sim-board.")
    assert "0 documents" in said[2]


def test_status_names_everything_in_eighty_columns() -> None:
    names = ("sim-comments", "sim-sitemap", "a-source-of-a-name-of-thirty-ch")
    one = {
        "documents": 12_345,
        "tokens": 9_876_543,
        "words_per_second": 3.2,
        "published_at": "2021-08-31T23:59:00+00:00",
    }
    server = {
        "sources": {name: {**one, "lag_p50_s": 12.3, "lag_p95_s": 100.0} for name in names},
        "reading": {
            "sources": {
                name: {"node": "yeoron-node-12", "tokens_per_second": 3.2} for name in names
            }
        },
    }
    console = Console(width=80)
    with console.capture() as captured:
        console.print(figure_table("Sources", server, 80))
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in captured.get()
    for part in ("sim-comments", "sim-sitemap", "yeoron-node-12", "12,345", "08-31 23:59"):
        assert part in captured.get()


def test_doctor_looks_at_the_home_of_the_demo_that_runs(
    place: Path, supervisor: int, yeoron: Any
) -> None:
    home = demo(place, supervisor)
    home.chmod(0o755)
    done = yeoron("doctor", "--json")
    found = {one["check"]: one for one in json.loads(done.out)}
    assert "of the demo that runs in var/demo" in done.err
    assert "demo" in found["home"]["found"], "which others can read"
    # The default home is not there at all.
    assert found["home"]["state"] != "ok"


@pytest.mark.parametrize(
    "arguments",
    [
        ("rollback", "--source", "sim-board", "--reason", "x", "--dry-run"),
        ("forget", "--word", "나침반", "--dry-run"),
        ("retain", "--dry-run"),
        ("database", "check"),
        ("invite", "file.json"),
        ("web", "--port", "TAKEN"),
        ("status",),
        ("token", "list"),
        ("live", "policy"),
        ("evaluate",),
    ],
    ids=" ".join,
)
def test_no_command_speaks_of_another_platform(
    place: Path, supervisor: int, yeoron: Any, arguments: tuple[str, ...]
) -> None:
    demo(place, supervisor)
    with listen_on("127.0.0.1", 0) as taken:
        port = address_of(taken).rsplit(":", 1)[1]
        done = yeoron(*(port if each == "TAKEN" else each for each in arguments))
    assert done.err.splitlines()[0] == "yeoron: of the demo that runs in var/demo."


STATUS = {
    "sources": {
        "sim-board": {
            "documents": 9,
            "tokens": 99,
            "words_per_second": 0.0,
            "published_at": None,
            "lag_p50_s": None,
            "lag_p95_s": None,
        }
    },
    # What the leases go by: a mean of earlier hours, or a guess.
    "reading": {
        "sources": {"sim-board": {"node": "n", "tokens_per_second": 72.0}},
        "nodes": {"n": 72.0},
    },
    "nodes": {
        "n": {
            "state": "active",
            "clock": 3,
            "report": {"sources": {"sim-board": {"errors": {"protocol": 1}}}},
        }
    },
    "sync": {
        "policy": "ssp",
        "running": "ssp",
        "push_every": 1,
        "pull_every": 1,
        "variation": None,
        "dropped_pushes": 0,
        "switches": [],
    },
    "tokens": 99,
    "vocabulary": 7,
    "words_per_second": 0.0,
    "policy": "ssp",
}


@pytest.fixture
def other(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server that is another platform's answers at the port of this folder's settings."""
    script = (
        "import http.server, sys\n"
        "class Answer(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200)\n"
        "        self.end_headers()\n"
        f"        self.wfile.write({json.dumps(STATUS).encode()!r})\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), Answer)\n"
        "print(server.server_port, flush=True)\n"
        "server.serve_forever()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "YEORON_PLATFORM": "/there/var"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    monkeypatch.setenv("YEORON_SERVER__HTTP_PORT", process.stdout.readline().strip())
    yield
    process.kill()
    process.wait()


@pytest.mark.usefixtures("other")
def test_status_says_whose_platform_answers_where_none_runs_here(place: Path, yeoron: Any) -> None:
    done = yeoron("status")
    assert done.code == 0
    assert done.err.startswith("yeoron: no platform runs in var; this is of the platform in /there")
    assert list(place.iterdir()) == []


@pytest.mark.usefixtures("other", "place")
def test_status_shows_no_speed_while_nothing_is_read(
    yeoron: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    row = next(line for line in yeoron("status").out.splitlines() if "sim-board" in line)
    assert row.split()[:4] == ["sim-board", "n", "0", "9"]
    assert "72" not in row


@pytest.mark.usefixtures("other", "place")
def test_status_says_that_faults_of_the_simulated_web_are_planted(
    yeoron: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "plants" not in yeoron("status").out
    monkeypatch.setenv("YEORON_CRAWL__REPLAY_CLOCK_URL", "http://127.0.0.1:9/clock.json")
    assert "sim-board (the simulated web plants faults): 1 protocol." in yeoron("status").out


@pytest.mark.usefixtures("other", "place")
def test_tables_of_a_status_are_drawn_alike(yeoron: Any) -> None:
    rules = {mark for mark in yeoron("status").out if 0x2500 <= ord(mark) < 0x2580}
    assert rules == {"─"}
