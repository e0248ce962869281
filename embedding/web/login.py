"""Login of the page when it is served alone: a token from a file, a signed cookie."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import Request
from starlette.responses import Response

from embedding.kernel.errors import ConfigError
from embedding.kernel.private import ensure_secret

COOKIE = "yeoron_session"
_SHORTEST = 16
LARGEST_FORM = 4096
MOST_TRIES = 10
"""Wrong tokens of one client in `TRY_SECONDS`; after them it waits."""
TRY_SECONDS = 60.0
MOST_CLIENTS = 10_000


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
    """Checks the token and signs sessions; another token ends all sessions."""

    def __init__(self, token: str, hours: float) -> None:
        self._token = token.encode()
        self._key = hashlib.sha256(b"yeoron session\0" + self._token).digest()
        self._seconds = hours * 3600.0
        self.tries = Tries()

    def accepts(self, token: str) -> bool:
        """Whether it is the token (compared in constant time)."""
        return hmac.compare_digest(token.strip().encode(), self._token)

    def start(self, request: Request, response: Response) -> None:
        """Give the browser a session."""
        expires = int(time.time() + self._seconds)
        body = f"{expires}.{secrets.token_hex(8)}"
        response.set_cookie(
            COOKIE,
            f"{body}.{self._sign(body)}",
            max_age=int(self._seconds),
            path=_path(request),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def end(self, request: Request, response: Response) -> None:
        """Take the session away."""
        response.delete_cookie(COOKIE, path=_path(request), httponly=True, samesite="strict")

    def require(self, request: Request) -> None:
        """A dependency: raises LoginRequiredError unless the session is valid."""
        if not self.valid(request.cookies.get(COOKIE, "")):
            raise LoginRequiredError

    def valid(self, cookie: str) -> bool:
        """Whether a cookie was signed here and has not expired."""
        body, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(body).encode()):
            return False
        expires = body.partition(".")[0]
        return expires.isdecimal() and int(expires) > time.time()

    def _sign(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), hashlib.sha256).hexdigest()


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
