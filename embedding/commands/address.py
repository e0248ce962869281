"""An address to listen on, as it is typed."""

from __future__ import annotations

from embedding.kernel.errors import ConfigError

_ACCEPTED = "HOST:PORT, :PORT, PORT or HOST is accepted, an IPv6 address as [ADDRESS]:PORT"


def parse_listen(text: str) -> dict[str, object]:
    """`host` and `port` of HOST:PORT, those that are given; ConfigError for anything else."""
    host, port = text.strip(), ""
    if host.startswith("["):
        host, closed, rest = host[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ConfigError(f"--listen {text}: {_ACCEPTED}.")
        port = rest[1:]
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    elif host.isdigit():
        host, port = "", host
    elif ":" in host:
        raise ConfigError(f"--listen {text}: {_ACCEPTED}.")
    if port and not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ConfigError(f"--listen {text}: port {port}: 0 to 65535 are accepted.")
    if not (host or port):
        raise ConfigError(f"--listen {text!r}: {_ACCEPTED}.")
    found: dict[str, object] = {"host": host, "port": int(port) if port else None}
    return {name: value for name, value in found.items() if value not in ("", None)}
