"""Who may talk to a server."""

from __future__ import annotations

import numpy as np
import pytest
from certificates import make_certificate, make_token

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, PlatformError, RefusedError, UnavailableError
from embedding.kernel.ports import is_loopback
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer, running_server


@pytest.fixture
def token(tmp_path):
    return make_token(tmp_path)


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate for loopback: (cert, key)."""
    return make_certificate(tmp_path)


@pytest.fixture
def by_port(monkeypatch):
    """Without the Unix socket that clients of the server's machine and user take."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "r" * 120)


def quick(connect_timeout_s: float = 60.0, **changes) -> ExchangeConfig:
    return ExchangeConfig(connect_timeout_s=connect_timeout_s, max_backoff_s=0.2, **changes)


def test_a_token_is_asked_for_on_streams_and_control_calls(token, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("other")
    wrong.chmod(0o600)
    with running_server(ServerConfig(token_file=token, min_count=1)) as server:
        with ParameterClient(server.location, node="n", config=quick(token_file=token)) as client:
            assert client.hello().dim == 8
            assert client.admit(["말"], np.array([1])).tolist() == [0]
            assert client.status()["vocabulary"] == 1
        for config in (quick(), quick(token_file=wrong)):
            with ParameterClient(server.location, node="n", config=config) as client:
                for call in (client.hello, client.status):
                    with pytest.raises(RefusedError, match="token is missing or wrong"):
                        call()


def test_tls_carries_the_exchange_and_an_unknown_authority_is_not_trusted(
    certificate, token, by_port
):
    cert, key = certificate
    chosen = ServerConfig(tls_cert=cert, tls_key=key, token_file=token, min_count=1)
    with running_server(chosen) as server:
        assert server.location.startswith("grpc+tls://")
        good = quick(tls_ca=cert, token_file=token)
        with ParameterClient(server.location, node="n", config=good) as client:
            assert client.admit(["말"], np.array([1])).tolist() == [0]
        plain = server.location.replace("grpc+tls", "grpc")
        for location, config in (
            (server.location, quick(1.0, token_file=token)),
            (plain, quick(1.0, token_file=token)),
        ):
            client = ParameterClient(location, node="n", config=config)
            with client, pytest.raises(UnavailableError):
                client.hello()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_other_addresses_than_loopback_need_token_and_tls(host, token, certificate):
    cert, key = certificate
    for given in (
        {},
        {"token_file": token},
        {"tls_cert": cert, "tls_key": key},
    ):
        with pytest.raises(ConfigError, match="not loopback"):
            validate(ServerConfig, {"host": host, **given}, "server")
    validate(
        ServerConfig,
        {"host": host, "token_file": token, "tls_cert": cert, "tls_key": key},
        "server",
    )
    with pytest.raises(ConfigError, match="http_host"):
        validate(ServerConfig, {"http_host": host}, "server")


def test_loopback_is_known():
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "10.0.0.1", "here", ""))


def test_half_a_certificate_and_an_empty_token_are_refused(tmp_path, certificate):
    with pytest.raises(ConfigError, match="together"):
        validate(ServerConfig, {"tls_cert": certificate[0]}, "server")
    for content in (" ", "비밀", "two words", "a\x00b"):
        odd = tmp_path / "odd"
        odd.write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match="printable ASCII"):
            ParameterServer(ServerConfig(token_file=odd), dim=4).start()
    with pytest.raises(ConfigError, match="token_file"):
        ParameterServer(ServerConfig(token_file=tmp_path / "none"), dim=4).start()


def test_clients_show_a_certificate_where_the_server_asks_for_one(
    tmp_path, certificate, token, by_port
):
    cert, key = certificate
    shown, shown_key = make_certificate(tmp_path, "node")
    chosen = ServerConfig(
        tls_cert=cert, tls_key=key, tls_client_ca=shown, token_file=token, min_count=1
    )
    with running_server(chosen) as server:
        good = quick(tls_ca=cert, token_file=token, tls_cert=shown, tls_key=shown_key)
        with ParameterClient(server.location, node="n", config=good) as client:
            assert client.hello().dim == 8
            assert client.status()["vocabulary"] == 0
        for other in ({}, {"tls_cert": cert, "tls_key": key}):
            config = quick(1.0, tls_ca=cert, token_file=token, **other)
            with ParameterClient(server.location, node="n", config=config) as client:
                for call in (client.hello, client.status):
                    with pytest.raises(UnavailableError, match="cannot be reached"):
                        call()
    with pytest.raises(ConfigError, match="tls_client_ca"):
        validate(ServerConfig, {"tls_client_ca": shown}, "server")


def test_a_client_is_told_why_it_cannot_reach_a_server(tmp_path, token, by_port):
    nameless, key = make_certificate(tmp_path, "nameless", names=("192.0.2.1",))
    other, _ = make_certificate(tmp_path, "other")
    with running_server(ServerConfig(tls_cert=nameless, tls_key=key)) as server:
        for ca, reason in ((nameless, "not for this address"), (other, "not signed by")):
            config = quick(0.5, tls_ca=ca)
            with (
                ParameterClient(server.location, node="n", config=config) as client,
                pytest.raises(UnavailableError, match=reason),
            ):
                client.hello()
    with running_server() as server:
        location = server.location.replace("grpc://", "grpc+tls://")
        with (
            ParameterClient(location, node="n", config=quick(0.5, tls_ca=other)) as client,
            pytest.raises(UnavailableError, match="does not speak TLS"),
        ):
            client.hello()


def test_two_servers_do_not_share_a_port():
    with running_server() as server:
        port = int(server.location.rsplit(":", 1)[1])
        with pytest.raises(PlatformError, match=f"port {port}"):
            ParameterServer(ServerConfig(port=port), dim=4).start()
