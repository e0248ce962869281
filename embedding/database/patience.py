"""Waiting for a database: nothing ends because it is away, full or locked.

One call asks again and again, with growing pauses; all others wait for it. So a database that is
locked holds up no event loop, and one that comes back is not run over.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from embedding.kernel.errors import ConfigError

_CODES = frozenset(
    (
        *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
        *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
        *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL),
    )
)
"""Primary result codes of SQLite that another try may not meet."""
_READ_ONLY = "25006"
"""PostgreSQL's state of a statement that came to a server which only follows, as in a failover."""
_CLASSES = frozenset(("08", "28", "3D", "40", "53", "55", "57", "58"))
"""PostgreSQL's classes of errors that another try may not meet: no connection, no login, no such
database now, a conflict, no room, a lock, a shutdown, a disk."""

log = logging.getLogger(__name__)

T = TypeVar("T")

_AWAY = "the frontier's database does not answer (%s); waiting."
_BACK = "the frontier's database answers again after %.1f s."
_SHORTEST = 0.25
LONGEST = 5.0
"""Most seconds between two tries."""


def away(error: sa.exc.SQLAlchemyError) -> bool:
    """Whether the database did not answer, was locked, full or restarting: it may answer later."""
    if isinstance(error, sa.exc.TimeoutError):
        return True
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _CODES
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state == _READ_ONLY or state[:2] in _CLASSES
    lost = isinstance(error, (sa.exc.OperationalError, sa.exc.InterfaceError))
    return lost or error.connection_invalidated


def cause(error: sa.exc.SQLAlchemyError) -> str:
    """Its name alone: what a database says of an error may hold an address."""
    orig = getattr(error, "orig", None) or error
    return getattr(orig, "sqlite_errorname", None) or type(orig).__name__


@dataclass(frozen=True)
class Outage:
    """What is known of the database; times are seconds of a clock that only goes forward.

    since   when a call failed that none has succeeded after; None: it answers
    tries   how often it was asked in vain since then
    before  seconds that earlier outages took
    """

    since: float | None = None
    tries: int = 0
    before: float = 0.0

    def failed(self, now: float) -> Outage:
        since = now if self.since is None else self.since
        return Outage(since, self.tries + 1, self.before)

    def answered(self, now: float) -> Outage:
        return Outage(None, 0, self.total(now))

    def lasting(self, now: float) -> float:
        """Seconds that it is away by now; 0 when it answers."""
        return 0.0 if self.since is None else now - self.since

    def total(self, now: float) -> float:
        """Seconds of this outage and of all before."""
        return self.before + self.lasting(now)

    @property
    def pause(self) -> float:
        return min(LONGEST, _SHORTEST * 2.0 ** min(self.tries - 1, 16))


class Patience:
    """Calls of one frontier, inside one event loop. A call that fails for another reason raises."""

    def __init__(self) -> None:
        self._outage = Outage()
        self._turn = asyncio.Lock()

    @property
    def away(self) -> float:
        """Seconds that the database does not answer by now; 0.0 when it does."""
        return self._outage.lasting(time.monotonic())

    def clock(self) -> float:
        """Monotonic seconds, which stand still while the database is away."""
        now = time.monotonic()
        return now - self._outage.total(now)

    def attempt(self, call: Callable[..., T], *arguments: Any) -> T | None:
        """What can be left out: the call's result, or None while the database is away."""
        if self._outage.since is not None:
            return None
        try:
            return call(*arguments)
        except sa.exc.SQLAlchemyError as error:
            self._failed(error)
            return None

    async def ask(
        self,
        call: Callable[..., T],
        *arguments: Any,
        again: Callable[..., T] | None = None,
        aside: bool = False,
    ) -> T:
        """The call's result, as soon as the database gives one.

        again  called in place of `call` from the second try on, where the first may have written
        aside  in a thread from the start: it takes long, or the loop must go on
        """
        if self._outage.since is None:
            try:
                if aside:
                    return await asyncio.to_thread(call, *arguments)
                return call(*arguments)
            except sa.exc.SQLAlchemyError as error:
                self._failed(error)
        async with self._turn:
            while True:
                if self._outage.since is not None:
                    await asyncio.sleep(self._outage.pause)
                try:
                    result = await asyncio.to_thread(again or call, *arguments)
                except sa.exc.SQLAlchemyError as error:
                    self._failed(error)
                else:
                    before, now = self._outage, time.monotonic()
                    if before.since is not None:
                        self._outage = before.answered(now)
                        log.warning(_BACK, before.lasting(now))
                    return result

    def _failed(self, error: sa.exc.SQLAlchemyError) -> None:
        if not away(error):
            raise error
        before, self._outage = self._outage, self._outage.failed(time.monotonic())
        if before.since is None:
            log.warning(_AWAY, cause(error))


def opened(open_it: Callable[[], T], wait: Callable[[float], object]) -> T | None:
    """What `open_it` opens; while its database is away it is tried again.

    open_it  raises ConfigError because of the database's own error
    wait     waits for so many seconds; true when nobody wants to wait any longer: then None
    """
    outage = Outage()
    while True:
        try:
            database = open_it()
        except ConfigError as error:
            reason = error.__cause__
            if not isinstance(reason, sa.exc.SQLAlchemyError) or not away(reason):
                raise
            if outage.since is None:
                log.warning(_AWAY, cause(reason))
            outage = outage.failed(time.monotonic())
            if wait(outage.pause):
                return None
        else:
            if outage.since is not None:
                log.warning(_BACK, outage.lasting(time.monotonic()))
            return database
