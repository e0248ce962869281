"""A PostgreSQL of its own for the tests, on a Unix socket in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from disks import small_disk
from waiting import until


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


KEYED = "keyed"
"""A user that must show a password, once somebody makes it."""


class PostgresServer:
    """A server that can be stopped and started again; its databases stay."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.programs = programs
        self._account = owner()
        self._quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        self._server: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        self.give(self.folder)
        initdb = [self.programs / "initdb", "-D", self.folder / "data", "-U", "yeoron"]
        options = ["-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8"]
        subprocess.run([*initdb, *options], check=True, timeout=120, **self._quiet, **self._account)
        # One user must show a password.
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {KEYED} scram-sha-256\n{rules.read_text()}")

    def give(self, folder: Path) -> None:
        """Make a folder the server's own."""
        if self._account:
            os.chown(folder, self._account["user"], self._account["group"])

    def start(self) -> None:
        settings = ("listen_addresses=", f"unix_socket_directories={self.folder}", "fsync=off")
        options = [part for each in settings for part in ("-c", each)]
        self._server = subprocess.Popen(
            [self.programs / "postgres", "-D", self.folder / "data", *options],
            **self._quiet,
            **self._account,
        )
        until(self._answers, "PostgreSQL did not start")

    def _answers(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, "PostgreSQL ended"
        try:
            with self._admin():
                return True
        except sa.exc.OperationalError:
            return False

    def stop(self, how: int = signal.SIGQUIT) -> None:
        """SIGQUIT ends it as a crash does, SIGINT cuts everybody off."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(300)
            self._server = None

    def address(self, database: str, user: str = "yeoron") -> str:
        return f"postgresql+psycopg://{user}@/{database}?host={self.folder}"

    def new_database(self, how: str = "") -> str:
        """Address of a fresh database."""
        name = f"y{uuid.uuid4().hex}"
        self.run(f'CREATE DATABASE "{name}" {how}')
        return self.address(name)

    def run(self, *statements: str) -> None:
        """As the one who may do everything."""
        with self._admin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    @contextmanager
    def slow(self) -> Iterator[None]:
        """It works for a twentieth of a second, and stands still for half of one."""
        over = threading.Event()

        def processes() -> list[psutil.Process]:
            assert self._server is not None
            whole = psutil.Process(self._server.pid)
            return [whole, *whole.children(recursive=True)]

        def send(number: int) -> None:
            for process in processes():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(number)

        def hinder() -> None:
            while not over.is_set():
                send(signal.SIGSTOP)
                over.wait(0.5)
                send(signal.SIGCONT)
                over.wait(0.05)

        hindering = threading.Thread(target=hinder)
        hindering.start()
        try:
            yield
        finally:
            over.set()
            hindering.join()
            send(signal.SIGCONT)

    @contextmanager
    def away(self, address: str) -> Iterator[None]:
        """Nobody comes into the database meanwhile, and who was in it is put out."""
        name = make_url(address).database
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        self.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false', end)
        try:
            yield
        finally:
            self.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')

    @contextmanager
    def small_database(self) -> Iterator[tuple[str, Path]]:
        """Address of a database on sixteen megabytes of its own, and where they are."""
        with small_disk(self.folder) as disk:
            place = disk / "space"
            place.mkdir()
            self.give(place)
            name = f"s{uuid.uuid4().hex}"
            self.run(f"CREATE TABLESPACE {name} LOCATION '{place}'")
            address = self.new_database(f"TABLESPACE {name}")
            try:
                yield address, disk
            finally:
                self.run(
                    f'DROP DATABASE "{make_url(address).database}" WITH (FORCE)',
                    f"DROP TABLESPACE {name}",
                )

    @contextmanager
    def _admin(self) -> Iterator[sa.Connection]:
        engine = sa.create_engine(
            self.address("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )
        with engine.connect() as connection:
            yield connection


def row_counts(address: str) -> dict[str, int]:
    """Number of rows of every table of a database."""
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return {
            name: connection.execute(
                sa.select(sa.func.count()).select_from(sa.table(name))
            ).scalar_one()
            for name in sa.inspect(connection).get_table_names()
        }


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A fresh server."""
    found = binaries()
    if found is None:
        pytest.skip("no PostgreSQL server on this machine")
    # A socket's path must be short, and each folder above it open to the server's account.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    server = PostgresServer(folder, found)
    try:
        server.make()
        server.start()
        yield server
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
