"""`yeoron web` as a user meets it: plain on loopback, TLS with a certificate."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from commandline import Done, Yeoron
from embedding.kernel.certificates import make_certificate
from embedding.kernel.ports import address_of, listen_on
from waiting import until
from yeoron_lab.ports import lasting_port

MOST_CONNECTIONS = 64

pytestmark = pytest.mark.slow
COMMAND = (sys.executable, "-m", "embedding.cli", "web")


@pytest.fixture
def refused(yeoron: Yeoron, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yeoron:
    """Call `yeoron web` in this process, which it ends before it begins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "var"))

    def call(*arguments: object) -> Done:
        done = yeoron("web", *arguments)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
        return done

    return call


def test_beyond_loopback_it_is_refused_in_the_clear(refused: Yeoron, tmp_path):
    assert "host 0.0.0.0 is not loopback" in refused("--host", "0.0.0.0").err
    assert not (tmp_path / "var").exists()


def test_with_a_certificate_it_speaks_tls(tmp_path):
    cert, key = make_certificate(tmp_path, "page")
    port = lasting_port()
    options = ("--port", str(port), "--tls-cert", str(cert), "--tls-key", str(key))
    process = subprocess.Popen(
        [*COMMAND, "--host", "0.0.0.0", *options],
        cwd=tmp_path,
        env={**os.environ, "YEORON_PATHS__HOME": str(tmp_path / "var")},
        stdout=subprocess.DEVNULL,
    )
    known = ssl.create_default_context(cafile=str(cert))

    def answers() -> bool:
        assert process.poll() is None
        try:
            url = f"https://127.0.0.1:{port}/login"
            return httpx.get(url, verify=known, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    try:
        until(answers)
        # Idle connections, of which each has done its handshake, are not kept.
        with ExitStack() as stack:
            idle = []
            for _ in range(MOST_CONNECTIONS + 10):
                plain = socket.create_connection(("127.0.0.1", port), timeout=60)
                idle.append(
                    stack.enter_context(known.wrap_socket(plain, server_hostname="127.0.0.1"))
                )
            assert answers()
            assert idle[0].recv(1) == b"", "the one that waited longest made room"
    finally:
        process.kill()
        process.wait(300)


@pytest.mark.parametrize("wrong", ["of another key", "no certificate", "not there", "locked"])
def test_a_certificate_that_cannot_be_served_is_one_sentence(refused: Yeoron, tmp_path, wrong):
    cert, key = make_certificate(tmp_path, "page")
    if wrong == "of another key":
        cert, _ = make_certificate(tmp_path, "other")
    elif wrong == "no certificate":
        cert = key
    elif wrong == "not there":
        cert = tmp_path / "none.pem"
    else:
        cert, key = make_certificate(tmp_path, "locked", passphrase=b"pass")
    done = refused("--port", lasting_port(), "--tls-cert", cert, "--tls-key", key)
    assert str(key if wrong == "locked" else cert) in done.err


def test_a_certificate_that_is_over_is_named(tmp_path):
    cert, key = make_certificate(tmp_path, "page", last=timedelta(seconds=-60))
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", "--tls-cert", str(cert), "--tls-key", str(key)],
        cwd=tmp_path,
        env={**os.environ, "YEORON_PATHS__HOME": str(tmp_path / "var")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert f"{cert}: the certificate expired on " in process.stderr.readline()
    finally:
        process.kill()
        process.communicate(timeout=300)


def test_on_a_taken_port_no_address_is_printed(refused: Yeoron):
    with listen_on("127.0.0.1", 0) as taken:
        port = address_of(taken).rsplit(":", 1)[1]
        assert f"127.0.0.1:{port} cannot be listened on" in refused("--port", port).err
