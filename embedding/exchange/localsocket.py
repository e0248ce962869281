"""A server's Unix socket for clients of its own machine and user, beside its port with TLS.

On one machine TLS protects nothing that the system does not: the socket lies in a folder of mode
0700, which only its owner (and root) can enter.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
"""What a path may hold to be an address as it stands."""
_LONGEST = 100
"""Bytes of a socket's path: the system allows 107."""


def socket_path(host: str, port: int) -> Path | None:
    """Where the server that listens at `host`:`port` has its socket; None where it can have none.

    The folder is made if it is missing. None: the path is too long or has other characters than
    an address, or the folder is not this user's alone.
    """
    home = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(home, f"yeoron-{os.geteuid()}")
    path = folder / f"{host.strip('[]').replace(':', '_')}-{port}"
    if len(os.fsencode(path)) > _LONGEST or not _PLAIN.fullmatch(str(path)):
        return None
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        # Not followed: somebody else's link in a folder that all may write leads anywhere.
        status = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return path if own and not status.st_mode & 0o077 else None


def local_location(location: str) -> str:
    """`grpc+unix://…` where `location` has TLS and a server of this user and machine answers there
    by its socket; else `location` itself."""
    parts = urlsplit(location)
    if parts.scheme != "grpc+tls" or parts.hostname is None or parts.port is None:
        return location
    if not _is_here(parts.hostname):
        return location
    path = socket_path(parts.hostname, parts.port)
    return location if path is None or not answers(path) else f"grpc+unix://{path}"


def answers(path: Path) -> bool:
    """Whether a server listens there: one that was killed leaves its socket behind."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _is_here(host: str) -> bool:
    """Whether `host` is an address of this machine: only such a one can be bound."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True
