"""The client where no server answers, and what its settings refuse."""

import socket
import threading
from contextlib import suppress

import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, UnavailableError
from waiting import until

QUICK = ExchangeConfig(connect_timeout_s=0.5, max_backoff_s=0.1).model_copy(
    update={"request_timeout_s": 0.5}
)


def client(location: str, config: ExchangeConfig = QUICK) -> ParameterClient:
    return ParameterClient(location, node="n0", config=config)


def test_a_server_that_is_away_is_unavailable_after_the_limit():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with client(f"grpc://127.0.0.1:{port}") as c:
        with pytest.raises(UnavailableError, match="cannot be reached"):
            c.hello()
        with pytest.raises(UnavailableError):
            c.status()


def test_a_server_that_never_answers_is_given_up():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        location = f"grpc://127.0.0.1:{mute.getsockname()[1]}"
        with client(location) as c, pytest.raises(UnavailableError):
            c.hello()


def test_it_tries_to_connect_as_often_as_the_settings_say_however_long_the_server_is_away():
    """gRPC's own pauses grow to two minutes: the 15th try would come after three."""
    config = QUICK.model_copy(update={"connect_timeout_s": 300.0})
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(170.0)

        def turn_away() -> None:
            for _ in range(15):
                door.accept()[0].close()

        visitor = threading.Thread(target=turn_away, daemon=True)
        visitor.start()
        stop, location = threading.Event(), f"grpc://127.0.0.1:{door.getsockname()[1]}"
        with ParameterClient(location, node="n0", config=config, stop=stop) as c:
            asking = threading.Thread(target=lambda: suppressed(c.status), daemon=True)
            asking.start()
            visitor.join(170.0)
            enough = not visitor.is_alive()
            stop.set()
            asking.join(90.0)
        assert enough


def suppressed(call) -> None:
    with suppress(UnavailableError):
        call()


def test_a_closed_client_leaves_no_thread():
    before = threading.active_count()
    for _ in range(3):
        with client("grpc://127.0.0.1:1") as c, pytest.raises(UnavailableError):
            c.hello()
    until(lambda: threading.active_count() <= before)


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
    for wrong in ({"connect_timeout_s": 0}, {"colour": "red"}):
        with pytest.raises(ConfigError, match="exchange"):
            validate(ExchangeConfig, wrong, "exchange")
