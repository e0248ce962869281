"""Login of the page when it is served alone: a token from a file or an account, and sessions.

A session is a row in the file of accounts, so that it ends when somebody logs out, and with the
secret that opened it.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from embedding.kernel.errors import ConfigError
from embedding.kernel.private import ensure_secret
from embedding.web.links import FEED
from embedding.web.tokens import (
    OPERATOR,
    TOKEN_PREFIX,
    Access,
    AccessTokens,
    TokenRefusedError,
    digest_of,
    opened,
)

COOKIE = "yeoron_session"
_SHORTEST = 16
LARGEST_FORM = 4096
MOST_TRIES = 10
"""Wrong tokens of one client in `TRY_SECONDS`; after them it waits."""
TRY_SECONDS = 60.0
MOST_CLIENTS = 10_000
_SESSIONS = """CREATE TABLE IF NOT EXISTS session (
    digest TEXT PRIMARY KEY, opened_by TEXT NOT NULL, expires INTEGER NOT NULL)"""


class LoginRequiredError(Exception):
    """The request carries no valid session."""


def ensure_token(path: Path) -> str:
    """The token in `path`; makes the file (mode 600) when it is missing.

    Raises ConfigError when it cannot be read or made, or holds fewer than 16 characters.
    """
    try:
        ensure_secret(path, secrets.token_urlsafe(24) + "\n")
    except OSError as error:
        raise ConfigError(
            f"login token {path}: cannot be made: {error.strerror}; a writable path is accepted."
        ) from error
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"login token {path}: cannot be read: {error}.") from error
    if len(token) < _SHORTEST:
        raise ConfigError(
            f"login token {path}: it has {len(token)} characters, at least {_SHORTEST} are "
            "accepted; remove the file and a new one is made."
        )
    return token


class Tries:
    """Tries by client, so that nobody guesses or asks too fast; a pure function of the clock.

    most  tries of one client in `TRY_SECONDS`
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST_TRIES) -> None:
        self._clock = clock
        self._most = most
        self._tries: dict[str, list[float]] = {}

    def wait(self, client: str) -> int:
        """Seconds that this client has to wait before it may try again; 0: none."""
        times = [at for at in self._tries.get(client, ()) if at > self._clock() - TRY_SECONDS]
        if len(times) < self._most:
            return 0
        return int(times[-self._most] + TRY_SECONDS - self._clock()) + 1

    def note(self, client: str) -> None:
        """Note a try; of too many clients the one that was quiet longest is forgotten."""
        times = self._tries.pop(client, [])
        self._tries[client] = [*times, self._clock()][-self._most :]
        if len(self._tries) > MOST_CLIENTS:
            del self._tries[next(iter(self._tries))]


class Login:
    """Checks secrets and keeps sessions.

    token     opens the page without a name, as operator: whoever has it can read the home
    accounts  of people
    sessions  file in which sessions are kept
    """

    def __init__(self, token: str, accounts: AccessTokens, sessions: Path, hours: float) -> None:
        self._owner = Access(digest_of(token), "", OPERATOR)
        self._accounts = accounts
        self._sessions = sessions
        self._seconds = int(hours * 3600)
        self.tries = Tries()

    def accepts(self, name: str, secret: str) -> Access | None:
        """Who that is; None where name and secret are not accepted."""
        if name.strip():
            return self._accounts.log_in(name, secret)
        known = hmac.compare_digest(digest_of(secret), self._owner.digest)
        return self._owner if known else None

    def start(self, request: Request, response: Response, who: Access) -> None:
        """Give the browser a session."""
        session = secrets.token_urlsafe(32)
        now = int(time.time())
        with opened(self._sessions, _SESSIONS) as database:
            database.execute("DELETE FROM session WHERE expires <= ?", (now,))
            row = (digest_of(session), who.digest, now + self._seconds)
            database.execute("INSERT INTO session VALUES (?, ?, ?)", row)
        response.set_cookie(
            COOKIE,
            session,
            max_age=self._seconds,
            path=_path(request),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def end(self, request: Request, response: Response) -> None:
        with opened(self._sessions, _SESSIONS) as database:
            known = (digest_of(request.cookies.get(COOKIE, "")),)
            database.execute("DELETE FROM session WHERE digest = ?", known)
        response.delete_cookie(COOKIE, path=_path(request), httponly=True, samesite="strict")

    def require(self, request: Request) -> None:
        """A dependency: raises LoginRequiredError unless the session is valid."""
        access = self.who(request.cookies.get(COOKIE, ""))
        if access is None:
            raise LoginRequiredError
        request.state.login_name, request.state.role = access.name, access.role

    def who(self, session: str) -> Access | None:
        """Whose session it is; None where it ended, or what opened it is not accepted any more."""
        if not session:
            return None
        with opened(self._sessions, _SESSIONS) as database:
            row = database.execute(
                "SELECT opened_by, expires FROM session WHERE digest = ?", (digest_of(session),)
            ).fetchone()
        if row is None or row[1] <= time.time():
            return None
        return self._owner if row[0] == self._owner.digest else self._accounts.find(row[0])


async def read_form(request: Request) -> dict[str, str]:
    """A short urlencoded form; empty when it is too long or not text."""
    body = await read_body(request, LARGEST_FORM)
    try:
        return {name: values[0] for name, values in parse_qs((body or b"").decode()).items()}
    except UnicodeDecodeError:
        return {}


async def read_body(request: Request, most: int) -> bytes | None:
    """What was sent; None where it has more than so many bytes, of which no more are read."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            return None
    return body


def local_path(target: str) -> str:
    """`target` when it is a path below this application, else the front page."""
    plain = target.startswith("/") and not target.startswith("//")
    if not plain or "\\" in target or any(ord(c) < 32 for c in target):
        return "/"
    return target


def _path(request: Request) -> str:
    return str(request.scope.get("root_path", "")) or "/"


class TooManyError(Exception):
    """A program asks too fast; seconds: how long it has to wait."""

    def __init__(self, seconds: int, why: str) -> None:
        super().__init__(f"{why}: ask again in {seconds} s.")
        self.seconds = seconds


class TokenAccess:
    """ASGI middleware: requests with a token go to `programs`, all others pass."""

    def __init__(self, app: ASGIApp, programs: ASGIApp) -> None:
        self._app = app
        self._programs = programs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._programs if bears_token(scope) else self._app)(scope, receive, send)


class TokenGuard:
    """Lets accepted tokens in, slows those who guess, and limits what one token may ask."""

    def __init__(self, tokens: AccessTokens, per_minute: int) -> None:
        self._tokens = tokens
        self._wrong = Tries()
        self._asked = Tries(most=per_minute)
        self._lock = threading.Lock()

    def require(self, request: Request) -> None:
        """A dependency: raises TokenRefusedError, or TooManyError for who asks too fast."""
        client = request.client.host if request.client else ""
        try:
            # Before the client is looked at: all programs of one machine have one address.
            known = self._tokens.check(token_of(request.scope)).digest
        except TokenRefusedError:
            with self._lock:
                if wait := self._wrong.wait(client):
                    raise TooManyError(wait, "too many wrong tokens came from here") from None
                self._wrong.note(client)
            raise
        with self._lock:
            if wait := self._asked.wait(known):
                raise TooManyError(wait, "this token asks more often than is allowed")
            self._asked.note(known)


def bears_token(scope: Scope) -> bool:
    """Whether a request has one of our tokens, real or not."""
    return scope["type"] == "http" and bool(token_of(scope))


def token_of(scope: Scope) -> str:
    """The token in the header or, for the feed alone, in the address; empty: none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            if kind.lower() == "bearer" and token.strip().startswith(TOKEN_PREFIX):
                return str(token.strip())
    root, path = str(scope.get("root_path", "")), str(scope["path"])
    if path.removeprefix(root) != FEED:
        return ""
    query: str = scope["query_string"].decode("latin-1")
    return parse_qs(query).get("token", [""])[0]
