"""What a process keeps from other users of the machine: its files, and its memory in a crash."""

from __future__ import annotations

import os
import resource
import secrets
from contextlib import suppress
from pathlib import Path

from embedding.kernel.errors import PlatformError

UMASK = 0o077
_NO_CORE = 1
"""Bytes of a core file. Below a page none is written; 0 would still let the kernel pipe one to a
program (core_pattern), which 1 forbids too."""


def leave_no_core() -> None:
    """This process, which may hold text, and those it starts leave no core dump; for good."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    # Nobody but root raises a limit, and one of 0 is kept.
    most = _NO_CORE if hard == resource.RLIM_INFINITY else min(hard, _NO_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def raise_descriptor_limit() -> None:
    """Let this process and those that it starts open as many files as the system allows them."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def write_privately() -> None:
    """What this process and those it starts make from now on is their owner's alone."""
    os.umask(UMASK)


def private_folder(path: Path) -> None:
    """Make a folder, or take one that is there, for its owner alone; PlatformError if it cannot."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.chmod(0o700)
    except OSError as error:
        raise PlatformError(
            f"{path}: cannot be kept from other users ({error.strerror}); a folder of one's own is "
            "accepted (paths.home)."
        ) from error


def ensure_secret(path: Path, text: str) -> None:
    """Write a file of mode 600 unless it is there, whole or not at all; raises OSError.

    Of two processes that make it the first one wins.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
