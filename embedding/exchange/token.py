"""Files that prove who somebody is: the shared secret of nodes and server, keys, certificates."""

from __future__ import annotations

import hmac
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.flight as flight

from embedding.kernel.errors import ConfigError

# gRPC ends the whole process when a header holds anything else.
_PRINTABLE = re.compile(r"[!-~]{1,4096}")


def read_token(path: Path) -> str:
    """The token in a file; ConfigError when there is none or it cannot be sent in a header."""
    try:
        token = read_file(path, "token_file").decode().strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"token_file {path}: it is not text.") from error
    if not _PRINTABLE.fullmatch(token):
        raise ConfigError(
            f"token_file {path}: one word of printable ASCII characters is accepted, as "
            "`openssl rand -hex 32` gives; the file is empty or holds others."
        )
    private(path, "token_file")
    return token


def read_file(path: Path, setting: str) -> bytes:
    """A file that `setting` names; ConfigError when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting} {path}: {error.strerror}.") from error


def private(path: Path, setting: str) -> None:
    """ConfigError when every user of the machine may read the secret in this file."""
    if path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
        raise ConfigError(
            f"{setting} {path}: every user of this machine may read or change it; "
            f"`chmod 600 {path}` makes it a secret."
        )


class Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """Who makes a call: an operator, or a node."""

    def __init__(self, *, operator: bool) -> None:
        self.operator = operator


class TokenRequired(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets only calls through that carry a token; where there is one for operators, notes whose.

    on_refused  hears of each call without one
    """

    def __init__(
        self, token: str, operator: str | None = None, on_refused: Callable[[], None] | None = None
    ) -> None:
        self._on_refused = on_refused
        self._node = f"Bearer {token}".encode()
        self._operator = self._node if operator is None else f"Bearer {operator}".encode()

    def start_call(self, info: Any, headers: dict[str, list[Any]]) -> Caller:
        """The caller's role; refuses a call without a token."""
        del info
        for value in headers.get("authorization", []):
            shown = value if isinstance(value, bytes) else str(value).encode()
            operator = hmac.compare_digest(shown, self._operator)
            if hmac.compare_digest(shown, self._node) or operator:
                return Caller(operator=operator)
        if self._on_refused is not None:
            self._on_refused()
        raise flight.FlightUnauthenticatedError("a token is needed")
