"""`yeoron serve` as a user meets it: a process, its ready line, its end, its refusals."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import psutil
import pytest
from certificates import make_certificate, make_token

from commandline import Done, Yeoron
from embedding.commands.services import parse_listen
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.peer import Channel
from embedding.kernel.errors import ConfigError, FencedError, RefusedError
from embedding.settings import Settings
from embedding.worker.process.making import connect
from waiting import until

WAIT_S = 90


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "embedding.cli", *arguments]


@contextmanager
def serving(home, *arguments: str) -> Iterator[tuple[subprocess.Popen, str, str]]:
    """A server process: it, where it is, its status page."""
    log = home / "stderr"
    environment = {
        **os.environ,
        "YEORON_PATHS__HOME": str(home / "var"),
        "YEORON_SERVER__PORT": "0",
    }
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command("serve", "--http-port", "0", *arguments),
            cwd=home,
            stderr=stderr,
            env=environment,
        )
    try:
        ready = re.compile(r"ready at (\S+), status at (\S+), on")
        until(lambda: ready.search(log.read_text()) or process.poll() is not None, log.read_text)
        assert process.poll() is None, log.read_text()
        found = ready.search(log.read_text())
        assert found is not None
        yield process, found[1], found[2]
    finally:
        process.kill()
        process.wait(WAIT_S)


def line(home, *, operator: bool = False) -> ExchangeConfig:
    """How a server of this home is reached."""
    here = Settings(paths={"home": home / "var"})
    return here.line("grpc://127.0.0.1:1", operator=operator)


@pytest.fixture
def refused(yeoron: Yeoron, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yeoron:
    """Call `yeoron serve` in this process, which it ends before it begins: no home is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "var"))
    monkeypatch.setenv("YEORON_SERVER__PORT", "0")

    def call(*arguments: object) -> Done:
        done = yeoron("serve", "--http-port", "0", *arguments)
        assert "Traceback" not in done.err
        assert not (tmp_path / "var").exists()
        return done

    return call


def test_a_node_reaches_a_server_with_token_and_certificate_until_sigterm(tmp_path):
    cert, key = make_certificate(tmp_path)
    token = make_token(tmp_path)
    files = ("--token-file", str(token), "--tls-cert", str(cert), "--tls-key", str(key))
    with serving(tmp_path, "--listen", "[::1]:0", *files) as (process, location, status):
        assert location.startswith("grpc+tls://[::1]:")
        config = ExchangeConfig(token_file=token, tls_ca=cert)
        with ParameterClient(location, node="n", config=config) as client:
            assert client.hello().epoch > 0
            assert client.status()["nodes"]["n"]["state"] == "idle"
        assert httpx.get(status, trust_env=False).json()["policy"] == "ssp"
        assert httpx.get(status.replace("/status", "/health"), trust_env=False).status_code == 200
        shown = subprocess.run(
            command("status", "--json"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
            env={**os.environ, "YEORON_SERVER__HTTP_PORT": status.split(":")[-1].split("/")[0]},
        )
        assert shown.returncode == 0, shown.stderr
        assert '"policy": "ssp"' in shown.stdout
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    port = int(location.rsplit(":", 1)[1])
    with socket.socket(socket.AF_INET6) as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("::1", port))
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_beyond_loopback_a_server_refuses_without_token_and_certificate(refused: Yeoron):
    done = refused("--listen", "0.0.0.0:0")
    assert done.code == 2
    assert "accepted with token_file, tls_cert and tls_key." in " ".join(done.err.split())


def test_a_port_that_is_taken_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            command("serve", "--http-port", "0", "--listen", f"127.0.0.1:{port}"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
            env={**os.environ, "YEORON_PATHS__HOME": str(tmp_path / "var")},
        )
    assert done.returncode == 1
    assert f"port {port} of 127.0.0.1" in done.stderr
    assert "Address already in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:9000", {"host": "127.0.0.1", "port": 9000}),
        ("[::1]:9000", {"host": "::1", "port": 9000}),
        ("[::1]", {"host": "::1"}),
        ("9000", {"port": 9000}),
        (":9000", {"port": 9000}),
        (":0", {"port": 0}),
        ("example.org:", {"host": "example.org"}),
        ("example.org", {"host": "example.org"}),
    ],
)
def test_addresses_are_read_as_they_are_typed(text, found):
    assert parse_listen(text) == found


@pytest.mark.parametrize("text", ["::1:80", "[::1", "[::1]80", "a:b", "a:70000", "", ":", "a:-1"])
def test_addresses_that_are_none_are_refused(text):
    with pytest.raises(ConfigError, match="accepted"):
        parse_listen(text)


def test_a_server_that_restores_or_ails_says_so_in_the_status(tmp_path, monkeypatch, capsys):
    from embedding.commands.operate import status
    from embedding.kernel.errors import UnavailableError
    from embedding.server.figures.http import HttpService

    http = HttpService(host="127.0.0.1", port=0)
    http.start()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YEORON_SERVER__HTTP_PORT", http.url.rsplit(":", 1)[1])
    try:
        with pytest.raises(UnavailableError, match="is restoring"):
            status()
        shown = {"tokens": 1, "vocabulary": 1, "words_per_second": 1.0, "policy": "ssp"}
        shown["ailing"] = ["the last checkpoint failed."]
        http.show(
            SimpleNamespace(
                status=lambda: shown, metrics=lambda: b"", ailing=lambda: shown["ailing"]
            )
        )
        status()
        assert "server: the last checkpoint failed." in capsys.readouterr().out
    finally:
        http.stop()


def test_a_policy_is_set_with_its_settings(tmp_path):
    chosen = ("--policy", "easgd", "--sync-setting", "tau=8", "--sync-setting", "combine=mean")
    with serving(tmp_path, *chosen) as (_, location, _):
        channel = Channel(location, line(tmp_path, operator=True))
        try:
            told = channel.action("configure", {})
        finally:
            channel.close()
        assert (told["policy"], told["tau"], told["combine"]) == ("easgd", 8, "mean")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("tau", "NAME=VALUE is accepted"),
        ("policy=bsp", "given by --policy"),
        ("tau=0", "tau"),
        ("taus=2", "taus"),
    ],
)
def test_a_setting_that_no_policy_has_is_refused(refused: Yeoron, given: str, said: str):
    done = refused("--sync-setting", given)
    assert (done.code, said in done.err) == (2, True), done.err


@pytest.mark.parametrize("shards", ["1", "2"])
def test_a_last_checkpoint_that_finds_no_room_is_said_and_is_no_good_end(tmp_path, shards: str):
    words = [f"말{i}" for i in range(5_000)]
    with serving(tmp_path, "--shards", shards) as (process, location, _):
        with connect(location, node="n", config=line(tmp_path)) as client:
            assert len(client.admit(words, np.full(len(words), 1_000))) == len(words)
        for each in (process.pid, *(p.pid for p in psutil.Process(process.pid).children())):
            # As on a full disk: what is longer than the log is not taken.
            hard = resource.prlimit(each, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(each, resource.RLIMIT_FSIZE, (300_000, hard))
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 1
    said = (tmp_path / "stderr").read_text()
    (sentence,) = [line for line in said.splitlines() if line.startswith("yeoron: state_dir ")]
    assert "and it was the last" in sentence
    assert "Traceback" not in said
    if shards == "2":
        assert "shard 0: it ended with exit code 1, without a last checkpoint" in sentence


def test_on_loopback_too_a_server_asks_who_calls(tmp_path):
    """Nodes may train, operators may change the training, strangers may not even look."""
    with serving(tmp_path, "--listen", "127.0.0.1:0") as (_, location, _):
        for name in ("node-token", "operator-token"):
            assert (tmp_path / "var" / "secrets" / name).stat().st_mode & 0o777 == 0o600

        def ask(config: ExchangeConfig, name: str, body: dict) -> object:
            channel = Channel(location, config)
            try:
                return channel.action(name, body)
            finally:
                channel.close()

        window = {"start": "1970-01-01T00:00+00:00", "end": "1970-02-01T00:00+00:00"}
        changes = (
            ("rollback", {"to": "nothing"}),
            ("configure", {"policy": "asp"}),
            ("cut", window),
        )
        for name, body in (*changes, ("status", {}), ("fence", {"node": "n", "incarnation": "x"})):
            with pytest.raises(RefusedError, match="the token is missing or wrong"):
                ask(ExchangeConfig(), name, body)
        with ParameterClient(
            location, node="n", config=line(tmp_path), incarnation="its own mark"
        ) as client:
            client.hello()
            # Who takes over reads the mark in the frontier; it is shown nowhere else.
            ask(line(tmp_path), "fence", {"node": "n", "incarnation": "another mark"})
            client.vocabulary()
            assert "its own mark" not in str(ask(line(tmp_path), "status", {}))
            ask(line(tmp_path), "fence", {"node": "n", "incarnation": "its own mark"})
            with pytest.raises(FencedError):
                client.vocabulary()
        for name, body in changes:
            with pytest.raises(RefusedError, match=f"{name}: an operator's token is needed"):
                ask(line(tmp_path), name, body)
        assert ask(line(tmp_path), "status", {})["policy"] == "ssp"
        assert ask(line(tmp_path, operator=True), "configure", {"policy": "asp"})["policy"] == "asp"


def test_idle_connections_to_its_pages_stop_neither_nodes_nor_checkpoints(tmp_path):
    """Any user of this machine reaches that port; the descriptors are the server's."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.prlimit(0, resource.RLIMIT_NOFILE, (hard, hard))
    with serving(tmp_path, "--listen", "127.0.0.1:0") as (process, location, status):
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard)
        # Few are left, as in a shell that allows 256.
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, hard))
        host, port = status.removeprefix("http://").partition("/")[0].split(":")
        idle = []
        try:
            for count in range(400):
                idle.append(socket.create_connection((host, int(port)), timeout=10))
                if count % 2:
                    idle[-1].sendall(b"GET /status HTTP/1.1\r\n")
            with ParameterClient(location, node="n", config=line(tmp_path, operator=True)) as one:
                assert one.hello().epoch > 0
                one.checkpoint(wait=True)
            page = httpx.get(status, trust_env=False, timeout=30)
            assert page.json()["policy"] == "ssp"
        finally:
            for one in idle:
                one.close()
    assert "Too many open files" not in (tmp_path / "stderr").read_text()
