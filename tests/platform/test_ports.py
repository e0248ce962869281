"""A taken port is named together with its setting."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedding.kernel.errors import PlatformError
from embedding.kernel.ports import is_free
from embedding.platform.ports import port_settings, require_free
from embedding.settings import Settings
from yeoron_lab import ports
from yeoron_lab.ports import lasting_port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_taken_port_names_port_setting_and_variable(taken: int) -> None:
    with pytest.raises(PlatformError) as error:
        require_free({"ports.mlflow": taken})
    for part in (str(taken), "ports.mlflow", "YEORON_PORTS__MLFLOW"):
        assert part in str(error.value)


def test_two_settings_with_one_port_are_refused() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with pytest.raises(PlatformError, match=r"ports\.a and ports\.b"):
        require_free({"ports.a": free, "ports.b": free})


def test_a_free_port_is_free_again_after_closing() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)


def test_every_service_has_a_port_of_its_own() -> None:
    named = port_settings(Settings(), simweb=True)
    assert len(set(named.values())) == len(named)


def test_a_lasting_port_is_none_that_the_system_gives_away() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    chosen = {lasting_port() for _ in range(50)}
    assert len(chosen) > 40, "two servers that start together would choose the same"
    assert all(10_000 <= port < first and is_free(port) for port in chosen)


def test_where_the_system_gives_away_all_ports_any_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "range"
    given.write_text("1024\t65535\n")
    monkeypatch.setattr(ports, "_RANGE", given)
    assert lasting_port() == 0
