"""Asking supervisord over its Unix socket: XML-RPC, as supervisorctl speaks it.

A process of supervisorctl takes 0.15 s of a processor, and a start asks twice a second.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOT_RUNNING = 70
"""Fault that stopping a service which does not run gives (`supervisor.xmlrpc.Faults`)."""

UNANSWERED = (OSError, http.client.HTTPException, xmlrpc.client.Error)
"""What a call raises where supervisord is away, is ending, or refuses."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__()
        self._path = path
        self._timeout = timeout

    def make_connection(self, host: Any) -> http.client.HTTPConnection:  # noqa: ARG002 - the socket is the host
        return _Connection(self._path, self._timeout)


@contextlib.contextmanager
def supervisor_calls(path: Path, timeout: float = 120) -> Iterator[Any]:
    """The methods `supervisor.*` of the supervisord that listens on the socket `path`.

    A call waits `timeout` seconds at most. Calls raise one of `UNANSWERED`.
    """
    transport = _Transport(path, timeout)
    with xmlrpc.client.ServerProxy("http://localhost", transport, allow_none=True) as proxy:
        yield proxy.supervisor
