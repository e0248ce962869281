"""Addresses and ports of this machine: which are its own, and which a server can come back to."""

from __future__ import annotations

import ipaddress
import random
import socket
from collections import deque
from pathlib import Path

from embedding.kernel.errors import ConfigError

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""What a request from this machine calls it in its Host header."""
_LOWEST = 10_000
_TRIES = 100
_given: deque[int] = deque(maxlen=1000)
"""Ports given out before, whose servers may not listen yet."""


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


def lasting_port(host: str = "127.0.0.1") -> int:
    """A free port that the system gives to nobody, so that a server finds it free after a restart.

    The system gives ports from its own range (`ip_local_port_range`) to every connection and to
    every server that asks for port 0: a port of that range may be taken while its server is down.
    Returns 0, which means any port, where no port below that range is free.
    """
    try:
        first = int(_RANGE.read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        first = 32_768
    if first <= _LOWEST:
        return 0
    tried = (random.randrange(_LOWEST, first) for _ in range(_TRIES))  # noqa: S311 - no secret
    for port in tried:
        if port not in _given and is_free(port, host):
            _given.append(port)
            return port
    return 0
