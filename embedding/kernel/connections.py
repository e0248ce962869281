"""Connections to a small HTTP server: at most so many, and none that is silent for long."""

from __future__ import annotations

import asyncio
import math

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 64
"""Connections of one server."""
SILENT_S = 10.0
"""Seconds that a connection may take for the head of a request, may be silent within its body, or
may read nothing of its answer."""


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP, of which nobody can take all descriptors of a process.

    uvicorn itself waits for a request for ever. Here a connection that sends none is closed. Where
    there are `MOST_CONNECTIONS`, the one that has waited longest makes room for a new one, so that
    whoever sends a request at once is answered, however many others do nothing.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, in place of another one where there are too many."""
        super().connection_made(transport)
        self._arm()
        if len(self.connections) > MOST_CONNECTIONS:
            known = (other for other in self.connections if isinstance(other, BoundedProtocol))
            min(known, key=lambda other: other.ends).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of a head do not give it more time."""
        super().data_received(data)
        if self._answering:
            self._await_body()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._answering and not self.transport.is_closing():
            self._disarm()
            self._arm()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._arm()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._await_body()

    @property
    def ends(self) -> float:
        """When it is closed, on the loop's clock, if no request comes; one is answered: never."""
        return math.inf if self._answering or self._timer is None else self._timer.when()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_body(self) -> None:
        """Give what is missing of the body its time, and the application all that it takes."""
        self._disarm()
        if self.conn.their_state is h11.SEND_BODY:
            self._arm()

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(SILENT_S, self._silent)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _silent(self) -> None:
        self._timer = None
        if self._answering and self.flow.read_paused:
            self._arm()  # not the client is slow, but who takes the body
        else:
            self.transport.abort()
