"""Clients of the server's own machine and user go by its Unix socket, where TLS costs nothing."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.localsocket import local_location, socket_path
from embedding.kernel.certificates import ensure_certificate
from embedding.kernel.errors import RefusedError
from embedding.server.config import ServerConfig
from embedding.server.service import running_server


@pytest.fixture
def tls(tmp_path):
    return ensure_certificate(tmp_path / "authority", "server")


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text("secret")
    path.chmod(0o600)
    return path


def served(tls, **more) -> ServerConfig:
    return ServerConfig(tls_cert=tls[0], tls_key=tls[1], min_count=1, **more)


def client_of(location, tls, **more) -> ParameterClient:
    line = ExchangeConfig(connect_timeout_s=20, max_backoff_s=0.2, tls_ca=tls[0], **more)
    return ParameterClient(location, node="n", config=line)


def test_a_client_of_this_machine_takes_the_socket_and_the_token_is_asked_for(tls, token):
    with running_server(served(tls, token_file=token)) as server:
        assert server.location.startswith("grpc+tls://")
        short = local_location(server.location)
        assert short.startswith("grpc+unix:///")
        path = Path(short.removeprefix("grpc+unix://"))
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        with client_of(server.location, tls, token_file=token) as client:
            assert client.admit(["말"], np.array([1])).tolist() == [0]
        with (
            client_of(server.location, tls) as client,
            pytest.raises(RefusedError, match="token is missing or wrong"),
        ):
            client.hello()
    assert local_location(server.location) == server.location


def test_without_tls_there_is_no_socket():
    with running_server(ServerConfig(min_count=1)) as server:
        assert local_location(server.location) == server.location
        host, port = server.location.removeprefix("grpc://").split(":")
        assert not socket_path(host, int(port)).exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7"])
def test_a_socket_of_a_killed_server_or_of_another_machines_is_passed_over(host):
    left = socket_path(host, 9)
    left.touch()
    try:
        assert local_location(f"grpc+tls://{host}:9") == f"grpc+tls://{host}:9"
    finally:
        left.unlink()


@pytest.fixture
def short():
    """A folder whose path is short enough for a socket, as pytest's own may not be."""
    with tempfile.TemporaryDirectory(prefix="y") as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    "why", ["open to others", "a link", "too long", "a blank", "홍길동", "a#b", "%41"]
)
def test_a_folder_that_is_not_ones_own_alone_is_not_used(why, tls, short, tmp_path, monkeypatch):
    runtime = short / {"too long": "r" * 120, "open to others": "r", "a link": "r"}.get(why, why)
    runtime.mkdir()
    folder = runtime / f"yeoron-{os.geteuid()}"
    if why == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif why == "open to others":
        folder.mkdir()
        folder.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    with running_server(served(tls)) as server:
        assert local_location(server.location) == server.location
        with client_of(server.location, tls) as client:
            assert client.hello().dim == 8


def test_a_folder_in_the_sockets_place_costs_the_socket_alone(tls, caplog):
    with running_server(served(tls)) as server:
        port = server.location.rpartition(":")[2]
    there = socket_path("127.0.0.1", int(port))
    there.mkdir()
    try:
        with running_server(served(tls).model_copy(update={"port": int(port)})) as server:
            assert local_location(server.location) == server.location
            with client_of(server.location, tls) as client:
                assert client.hello().dim == 8
    finally:
        there.rmdir()
    assert "no socket, the port alone is open" in caplog.text


def test_a_socket_that_answers_is_left_to_its_server(tls):
    """As of a server in another network that shares the folder."""
    with running_server(served(tls)) as server:
        port = int(server.location.rpartition(":")[2])
    path = socket_path("127.0.0.1", port)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with running_server(served(tls).model_copy(update={"port": port})) as server:
            assert server._flight.beside is None
        assert path.exists()
    path.unlink()


def test_control_calls_go_by_the_port_once_the_socket_is_gone(tls, tmp_path, monkeypatch):
    with running_server(served(tls)) as server:
        port = int(server.location.rpartition(":")[2])
        client = client_of(server.location, tls)
        assert client.status()["vocabulary"] == 0
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "r" * 120)
    with running_server(served(tls).model_copy(update={"port": port})), client:
        assert client.status()["vocabulary"] == 0
