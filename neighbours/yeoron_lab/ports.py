"""Ports that a server can come back to."""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

from embedding.kernel.ports import is_free

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
_TRIES = 100
_given: deque[int] = deque(maxlen=1000)
"""Ports given out before, whose servers may not listen yet."""


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
