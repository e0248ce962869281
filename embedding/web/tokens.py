"""Secrets that open the page: tokens of programs, and accounts of people with their roles.

Each is made once, kept as a digest, and withdrawn.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from embedding.kernel.errors import ConfigError, InputError, YeoronError
from embedding.kernel.private import ensure_secret

TOKEN_PREFIX = "yeoron_"  # noqa: S105 - no secret
"""Every token begins so: whoever finds one knows what it opens."""
READER, ANALYST, OPERATOR = ACCESS_ROLES = ("reader", "analyst", "operator")
"""Each may do what the ones before it may. A reader reads; an analyst writes notes, the shared
list, alerts and the mailed report; an operator changes sources, DAGs, runs and models."""
LONGEST_TOKEN_NAME = 80
_NOTED_S = 60
"""Seconds between two notes of when a token was used last."""
_TABLE = """CREATE TABLE IF NOT EXISTS token (
    name TEXT NOT NULL, digest TEXT PRIMARY KEY, role TEXT NOT NULL, made INTEGER NOT NULL,
    used INTEGER, withdrawn INTEGER)"""


class TokenRefusedError(Exception):
    """A token is not known, or no longer accepted; `key` is the text that says so, of `day`."""

    def __init__(self, key: str, sentence: str, day: str = "") -> None:
        super().__init__(sentence)
        self.key = key
        self.day = day


class RoleError(YeoronError):
    """Somebody may not do this; `needed` is the role that may."""

    def __init__(self, needed: str) -> None:
        super().__init__(f"this needs the role {needed}: ask whoever runs this platform for it.")
        self.needed = needed


def allows(role: str, needed: str) -> bool:
    """Whether a role may do what `needed` may."""
    return role in ACCESS_ROLES and ACCESS_ROLES.index(role) >= ACCESS_ROLES.index(needed)


@dataclass(frozen=True)
class Access:
    """Who showed an accepted secret, and the digest of it."""

    digest: str
    name: str
    role: str


@dataclass(frozen=True)
class AccessToken:
    """One token as it is listed; nobody can read the token itself again."""

    name: str
    role: str
    made: datetime
    used: datetime | None
    withdrawn: datetime | None


class AccessTokens:
    """The tokens in a SQLite file of mode 600, which several processes may use.

    What is kept is the SHA-256 of a token: 256 random bits need no salt and no slow hash.

    kind  what one of them is called: `token` of a program, `account` of a person
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, kind: str = "token"
    ) -> None:
        self._path = path
        self._clock = clock
        self._kind = kind

    def make(self, name: str, role: str = READER) -> str:
        """A new token or password, which is shown this once.

        Raises InputError for a name that is empty, too long or in use, and for an unknown role.
        """
        # A login by HTTP Basic ends a name at a colon.
        sayable = name.isprintable() and ":" not in name and name == name.strip()
        if not sayable or not 0 < len(name) <= LONGEST_TOKEN_NAME:
            raise InputError(
                f"{self._kind} {name[:LONGEST_TOKEN_NAME]!r}: a name of 1 to {LONGEST_TOKEN_NAME} "
                "printable characters without a colon is accepted, and no space at its ends."
            )
        if role not in ACCESS_ROLES:
            raise InputError(f"role {role[:40]!r}: {', '.join(ACCESS_ROLES)} are accepted.")
        prefix = TOKEN_PREFIX if self._kind == "token" else ""
        token = prefix + secrets.token_urlsafe(32)
        with self._opened() as database:
            # The lock comes before the look, so that two processes do not take one name.
            database.execute("BEGIN IMMEDIATE")
            known = "SELECT 1 FROM token WHERE name = ? AND withdrawn IS NULL"
            if database.execute(known, (name,)).fetchone():
                raise InputError(
                    f"{self._kind} {name!r}: there is one of this name; withdraw it first, or take "
                    "another name."
                )
            row = (name, digest_of(token), role, self._now())
            database.execute("INSERT INTO token VALUES (?, ?, ?, ?, NULL, NULL)", row)
        return token

    def list(self) -> list[AccessToken]:
        """All that were made, oldest first; withdrawn ones too."""
        if not self._path.exists():
            return []
        columns = "SELECT name, role, made, used, withdrawn FROM token ORDER BY made, rowid"
        with self._opened() as database:
            rows = database.execute(columns).fetchall()
        return [
            AccessToken(name, role, _time(made), used and _time(used), gone and _time(gone))
            for name, role, made, used, gone in rows
        ]

    def withdraw(self, name: str) -> None:
        """Accept the token of this name no longer; InputError where there is none."""
        current = [token.name for token in self.list() if token.withdrawn is None]
        if name not in current:
            known = ", ".join(current) or "none"
            raise InputError(
                f"{self._kind} {name[:LONGEST_TOKEN_NAME]!r}: there is none; there are: {known}."
            )
        with self._opened() as database:
            database.execute(
                "UPDATE token SET withdrawn = ? WHERE name = ? AND withdrawn IS NULL",
                (self._now(), name),
            )

    def find(self, digest: str) -> Access | None:
        """Whose secret has this digest, where it is still accepted."""
        if not self._path.exists():
            return None
        accepted = "SELECT digest, name, role FROM token WHERE digest = ? AND withdrawn IS NULL"
        with self._opened() as database:
            row = database.execute(accepted, (digest,)).fetchone()
        return row and Access(*row)

    def check(self, token: str) -> Access:
        """Whose token it is, and a note that it was used.

        Raises TokenRefusedError with a sentence for one that is not accepted.
        """
        digest = digest_of(token)
        row = None
        if self._path.exists():
            with self._opened() as database:
                row = database.execute(
                    "SELECT used, withdrawn, name, role FROM token WHERE digest = ?", (digest,)
                ).fetchone()
                now = self._now()
                if row and row[1] is None and now - (row[0] or 0) >= _NOTED_S:
                    database.execute("UPDATE token SET used = ? WHERE digest = ?", (now, digest))
        if row is None:
            raise TokenRefusedError(
                "token_unknown", "this token is not known: ask for one (yeoron token make)."
            )
        if row[1] is not None:
            day = f"{_time(row[1]):%Y-%m-%d}"
            raise TokenRefusedError(
                "token_withdrawn", f"this token was withdrawn on {day}: ask for a new one.", day
            )
        return Access(digest, row[2], row[3])

    def log_in(self, name: str, secret: str) -> Access | None:
        """Whose account it is; None where name and secret do not belong together."""
        try:
            access = self.check(secret)
        except TokenRefusedError:
            return None
        return access if access.name == name.strip() else None

    def _now(self) -> int:
        return int(self._clock())

    def _opened(self) -> AbstractContextManager[sqlite3.Connection]:
        return opened(self._path, _TABLE)


def accounts(path: Path, clock: Callable[[], float] = time.time) -> AccessTokens:
    """The accounts of people in a file."""
    return AccessTokens(path, clock, "account")


@contextmanager
def opened(path: Path, table: str, what: str = "tokens") -> Iterator[sqlite3.Connection]:
    """A private database with this table, its changes kept at the end of the block.

    Raises ConfigError, which says what is in it, where the file cannot be used.
    """
    try:
        ensure_secret(path, "")
        database = sqlite3.connect(path, timeout=10.0)
        try:
            with database:
                database.execute("PRAGMA secure_delete = ON")
                database.execute(table)
                yield database
        finally:
            database.close()
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(
            f"{what} {path}: cannot be used: {error}; a writable file is accepted."
        ) from error


def digest_of(secret: str) -> str:
    """What is kept of a secret: its SHA-256 in hexadecimal."""
    return hashlib.sha256(secret.strip().encode("utf-8", "replace")).hexdigest()


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
