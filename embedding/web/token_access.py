"""Who sends a token is answered as a program, wherever the page is mounted."""

from __future__ import annotations

import threading
from urllib.parse import parse_qs

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from embedding.web.feed import FEED
from embedding.web.login import Tries
from embedding.web.tokens import TOKEN_PREFIX, AccessTokens, TokenRefusedError


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
