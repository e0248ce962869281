"""/health, /metrics and /status of a running server, on loopback."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST

from embedding.errors import PlatformError

logger = logging.getLogger(__name__)


def create_app(status: Callable[[], dict[str, Any]], metrics: Callable[[], bytes]) -> FastAPI:
    """The three routes."""
    app = FastAPI(title="Yeoron parameter server", docs_url=None, redoc_url=None)

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/status")
    def show_status() -> dict[str, Any]:
        return status()

    @app.get("/metrics")
    def show_metrics() -> Response:
        return Response(metrics(), media_type=CONTENT_TYPE_LATEST)

    return app


class HttpService:
    """uvicorn in a thread of its own; the port is bound on construction."""

    def __init__(self, app: FastAPI, *, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise PlatformError(
                f"port {port} of {host} (setting http_port): {error.strerror}."
            ) from error
        bound = self._socket.getsockname()[1]
        self.url = f"http://[{host}]:{bound}" if ":" in host else f"http://{host}:{bound}"
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        """Serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and free the port."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])
