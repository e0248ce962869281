"""Pages of a parameter server that runs on another host, at the loopback port of this one.

Whoever asks for /health, /status and /metrics here asks it by the exchange's own door, with an
operator's token and the platform's certificate.
"""

from __future__ import annotations

import threading
from typing import Any

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.peer import ask
from embedding.kernel.errors import ExchangeError
from embedding.server.figures.http import HttpService
from embedding.settings import Settings

_SECONDS = 5.0


class ServerPages:
    """What a server somewhere else says of itself; each call raises ExchangeError without it."""

    def __init__(self, location: str, config: ExchangeConfig) -> None:
        self._location, self._config = location, config

    def status(self) -> dict[str, Any]:
        shown: dict[str, Any] = self._ask("status")
        return shown

    def metrics(self) -> bytes:
        return str(self._ask("metrics")).encode()

    def ailing(self) -> list[str]:
        try:
            return list(self.status()["ailing"])
        except ExchangeError as error:
            return [str(error)]

    def _ask(self, call: str) -> Any:
        return ask(self._location, self._config, call, timeout_s=_SECONDS)


def relay(settings: Settings, stop: threading.Event) -> None:
    """Show the pages of the server at `hosts.server` until `stop`."""
    http = HttpService(host=settings.server.http_host, port=settings.server.http_port)
    server = ServerPages(settings.server_location, settings.line(operator=True))
    http.show(server)
    http.start()
    stop.wait()
    http.stop()
