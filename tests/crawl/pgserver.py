"""A PostgreSQL of its own for the tests, on a Unix socket in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa


def binaries() -> Path | None:
    """Folder of the server's programs; None where there is none."""
    found = shutil.which("postgres")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").is_file()), None)


def owner() -> dict[str, int]:
    """The server refuses to be root: who runs it then, as arguments for `subprocess`."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid}
    pytest.skip("PostgreSQL does not run as root, and there is no other account")


@contextmanager
def running_postgres() -> Iterator[str]:
    """Folder of the socket of a fresh server."""
    found = binaries()
    if found is None:
        pytest.skip("no PostgreSQL server on this machine")
    account = owner()
    # A socket's path must be short, and each folder above it open to the server's account.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    try:
        if account:
            os.chown(folder, account["user"], account["group"])
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        data = folder / "data"
        subprocess.run(
            [found / "initdb", "-D", data, "-U", "yeoron", "-A", "trust", "-N", "-E", "UTF8"],
            check=True,
            timeout=120,
            **quiet,
            **account,
        )
        settings = ("listen_addresses=", f"unix_socket_directories={folder}", "fsync=off")
        options = [part for each in settings for part in ("-c", each)]
        server = subprocess.Popen([found / "postgres", "-D", data, *options], **quiet, **account)
        try:
            _ready(folder, server)
            yield str(folder)
        finally:
            server.send_signal(3)
            server.wait(60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def address(folder: str, database: str) -> str:
    return f"postgresql+psycopg://yeoron@/{database}?host={folder}"


def _ready(folder: Path, server: subprocess.Popen[bytes]) -> None:
    engine = sa.create_engine(address(str(folder), "postgres"))
    deadline = time.monotonic() + 120
    while True:
        try:
            engine.connect().close()
            break
        except sa.exc.OperationalError:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    engine.dispose()


def new_database(folder: str, name: str) -> str:
    """Address of a fresh database."""
    engine = sa.create_engine(address(folder, "postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
    return address(folder, name)
