"""A frontier's database of each kind, and what may befall it: one suite runs over all."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from disks import full, small_disk
from pgserver import PostgresServer, running_postgres


class TroubledDatabase(Protocol):
    """An empty database in which a frontier is made.

    address  SQLAlchemy's
    codes    what the log may call the trouble
    """

    address: str
    codes: tuple[str, ...]

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """Nothing can be written meanwhile."""


class LockedSqlite:
    codes = ("SQLITE_BUSY",)

    def __init__(self, file: Path) -> None:
        self._file = file
        self.address = f"sqlite:///{file}"

    @contextmanager
    def trouble(self) -> Iterator[None]:
        with closing(sqlite3.connect(self._file, isolation_level=None, timeout=60)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield
            connection.execute("COMMIT")


class FullDisk:
    """Whatever its database is, there is no byte left for it."""

    def __init__(self, address: str, disk: Path, code: str) -> None:
        self._disk = disk
        self.address = address
        self.codes = (code,)

    @contextmanager
    def trouble(self) -> Iterator[None]:
        with full(self._disk):
            yield


class LockedPostgres:
    codes = ("LockNotAvailable",)

    def __init__(self, server: PostgresServer) -> None:
        # As if it waited for 10 s.
        self.address = server.new_database() + "&options=-clock_timeout%3D100ms"

    @contextmanager
    def trouble(self) -> Iterator[None]:
        engine = sa.create_engine(self.address, poolclass=sa.NullPool)
        with engine.begin() as connection:
            # The nodes of a busy machine may hold a lock for longer than they wait for one.
            connection.exec_driver_sql("SET lock_timeout = 0")
            connection.exec_driver_sql("LOCK TABLE frontier_leases, frontier_urls, frontier_pool")
            yield


class ClosedPostgres:
    """Who is in the database is put out, and nobody comes in."""

    codes = ("AdminShutdown", "OperationalError")

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.address = server.new_database()

    @contextmanager
    def trouble(self) -> Iterator[None]:
        with self._server.away(self.address):
            yield


class CrashedPostgres:
    """The whole server is gone, as after a loss of power, and comes back."""

    codes = ("CrashShutdown", "AdminShutdown", "OperationalError")

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.address = server.new_database()

    @contextmanager
    def trouble(self) -> Iterator[None]:
        self._server.stop(signal.SIGQUIT)
        try:
            yield
        finally:
            self._server.start()


TROUBLES_OF_ANY_WRITE = ("sqlite locked", "postgres locked", "postgres closed", "postgres crashed")
FULL_DISKS = ("sqlite full", "postgres full")


@contextmanager
def troubled(kind: str, folder: Path) -> Iterator[TroubledDatabase]:
    """A database of this kind."""
    database, _, trouble = kind.partition(" ")
    if database == "sqlite" and trouble == "full":
        with small_disk(folder) as disk:
            yield FullDisk(f"sqlite:///{disk}/f.db", disk, "SQLITE_")
    elif database == "sqlite":
        yield LockedSqlite(folder / "f.db")
    else:
        with running_postgres() as server:
            if trouble == "full":
                with server.small_database() as (address, disk):
                    yield FullDisk(address, disk, "DiskFull")
            else:
                made = {"locked": LockedPostgres, "closed": ClosedPostgres}
                yield made.get(trouble, CrashedPostgres)(server)
