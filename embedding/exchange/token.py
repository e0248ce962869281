"""Files that prove who somebody is: the shared secret of nodes and server, keys, certificates."""

from __future__ import annotations

import re
import stat
from pathlib import Path

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
