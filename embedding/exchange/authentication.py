"""The token that an Arrow Flight service asks of everybody who calls it."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any

import pyarrow.flight as flight


class Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """Who makes a call: an operator, or a node."""

    def __init__(self, *, operator: bool) -> None:
        self.operator = operator


class TokenRequired(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets only calls through that carry a token; where there is one for operators, notes whose.

    on_refused  hears of each call without one
    """

    def __init__(
        self, token: str, operator: str | None = None, on_refused: Callable[[], None] | None = None
    ) -> None:
        self._on_refused = on_refused
        self._node = f"Bearer {token}".encode()
        self._operator = self._node if operator is None else f"Bearer {operator}".encode()

    def start_call(self, info: Any, headers: dict[str, list[Any]]) -> Caller:
        """The caller's role; refuses a call without a token."""
        del info
        for value in headers.get("authorization", []):
            shown = value if isinstance(value, bytes) else str(value).encode()
            operator = hmac.compare_digest(shown, self._operator)
            if hmac.compare_digest(shown, self._node) or operator:
                return Caller(operator=operator)
        if self._on_refused is not None:
            self._on_refused()
        raise flight.FlightUnauthenticatedError("a token is needed")
