"""Tokens with which programs read the page's answers: made once, kept as digests, withdrawn."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.private import ensure_secret

TOKEN_PREFIX = "yeoron_"  # noqa: S105 - no secret
"""Every token begins so: whoever finds one knows what it opens."""
READER = "reader"
"""The one role there is: reads what the page shows."""
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
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def make(self, name: str) -> str:
        """A new token of the role reader, which is shown this once.

        Raises InputError for a name that is empty, too long or in use.
        """
        if not name.strip() or len(name) > LONGEST_TOKEN_NAME or not name.isprintable():
            raise InputError(
                f"token {name[:LONGEST_TOKEN_NAME]!r}: a name of 1 to {LONGEST_TOKEN_NAME} "
                "printable characters is accepted."
            )
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        with self._opened() as database:
            # The lock comes before the look, so that two processes do not take one name.
            database.execute("BEGIN IMMEDIATE")
            known = "SELECT 1 FROM token WHERE name = ? AND withdrawn IS NULL"
            if database.execute(known, (name,)).fetchone():
                raise InputError(
                    f"token {name!r}: there is one of this name; withdraw it first, or take "
                    "another name."
                )
            row = (name, _digest(token), READER, self._now())
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
        current = [one.name for one in self.list() if one.withdrawn is None]
        if name not in current:
            known = ", ".join(current) or "none"
            raise InputError(
                f"token {name[:LONGEST_TOKEN_NAME]!r}: there is none; there are: {known}."
            )
        with self._opened() as database:
            database.execute(
                "UPDATE token SET withdrawn = ? WHERE name = ? AND withdrawn IS NULL",
                (self._now(), name),
            )

    def check(self, token: str) -> str:
        """The digest of a token that is accepted, and a note that it was used.

        Raises TokenRefusedError with a sentence for one that is not.
        """
        digest = _digest(token)
        found = None
        if self._path.exists():
            with self._opened() as database:
                found = database.execute(
                    "SELECT used, withdrawn FROM token WHERE digest = ?", (digest,)
                ).fetchone()
                now = self._now()
                if found and found[1] is None and now - (found[0] or 0) >= _NOTED_S:
                    database.execute("UPDATE token SET used = ? WHERE digest = ?", (now, digest))
        if found is None:
            raise TokenRefusedError(
                "token_unknown", "this token is not known: ask for one (yeoron token make)."
            )
        if found[1] is not None:
            day = f"{_time(found[1]):%Y-%m-%d}"
            raise TokenRefusedError(
                "token_withdrawn", f"this token was withdrawn on {day}: ask for a new one.", day
            )
        return digest

    def _now(self) -> int:
        return int(self._clock())

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The database, its changes kept at the end of the block."""
        try:
            ensure_secret(self._path, "")
            database = sqlite3.connect(self._path, timeout=10.0)
            try:
                with database:
                    database.execute(_TABLE)
                    yield database
            finally:
                database.close()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"tokens {self._path}: cannot be used: {error}; a writable file is accepted."
            ) from error


def _digest(token: str) -> str:
    return hashlib.sha256(token.strip().encode("utf-8", "replace")).hexdigest()


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
