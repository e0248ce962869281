"""The client where no server answers, and what its settings refuse."""

import socket
import threading
import time

import pytest

from embedding.config import validate
from embedding.errors import ConfigError, UnavailableError
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig

QUICK = ExchangeConfig(connect_timeout_s=0.5, request_timeout_s=0.5, max_backoff_s=0.1)


def client(location: str, config: ExchangeConfig = QUICK) -> ParameterClient:
    return ParameterClient(location, node="n0", config=config)


def test_a_server_that_is_away_is_unavailable_after_the_limit():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with client(f"grpc://127.0.0.1:{port}") as c:
        began = time.monotonic()
        with pytest.raises(UnavailableError, match="cannot be reached"):
            c.hello()
        with pytest.raises(UnavailableError):
            c.status()
        assert time.monotonic() - began < 100


def test_a_server_that_never_answers_is_given_up():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with client(f"grpc://127.0.0.1:{mute.getsockname()[1]}") as c:
            began = time.monotonic()
            with pytest.raises(UnavailableError):
                c.hello()
            assert time.monotonic() - began < 100


def test_a_closed_client_leaves_no_thread():
    before = threading.active_count()
    for _ in range(3):
        with client("grpc://127.0.0.1:1") as c, pytest.raises(UnavailableError):
            c.hello()
    deadline = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


@pytest.mark.parametrize("location", ["", "127.0.0.1:80", "http://127.0.0.1", "grpc://:x"])
def test_an_address_of_another_kind_is_refused(location):
    with pytest.raises(ConfigError, match=r"grpc://host:port|not a valid address"):
        client(location).hello()


def test_secrets_that_cannot_be_read_are_refused(tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for config, reason in (
        (ExchangeConfig(token_file=tmp_path / "none"), "No such file"),
        (ExchangeConfig(token_file=empty), "empty"),
        (ExchangeConfig(tls_ca=tmp_path / "none"), "No such file"),
    ):
        with pytest.raises(ConfigError, match=reason):
            client("grpc://127.0.0.1:1", config).hello()


def test_settings_are_checked():
    for wrong in ({"request_timeout_s": 0}, {"max_unconfirmed": 0}, {"colour": "red"}):
        with pytest.raises(ConfigError, match="exchange"):
            validate(ExchangeConfig, wrong, "exchange")
