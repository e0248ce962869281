"""Addresses and ports of this machine: loopback names, and which ports are free."""

from __future__ import annotations

import ipaddress
import socket

from embedding.kernel.errors import ConfigError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""What a request from this machine calls it in its Host header."""

REACHED = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - listening there, reached here
"""Addresses that stand for all of this machine's, and how this machine reaches them."""


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """A host as it stands in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def listen_on(host: str, port: int) -> socket.socket:
    """A socket that listens, so that its address is known to be one's own before it is said.

    port  0 takes a free one

    Raises ConfigError for a port that is taken and for an address that is not this machine's.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"{bracketed(host)}:{port} cannot be listened on ({error.strerror}); a free port "
            "(0 takes any) and an address of this machine are accepted: --port and --host."
        ) from error
    return listener


def address_of(listener: socket.socket) -> str:
    """HOST:PORT of a socket that listens."""
    host, port = listener.getsockname()[:2]
    return f"{bracketed(host)}:{port}"


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """True when a server could bind `port` now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
