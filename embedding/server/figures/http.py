"""/health, /metrics and /status of a server, on loopback, also while it is still restoring."""

from __future__ import annotations

import logging
import socket
import threading
from typing import Any, Protocol

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.middleware.trustedhost import TrustedHostMiddleware

from embedding.kernel.connections import BoundedProtocol
from embedding.kernel.errors import ExchangeError, PlatformError
from embedding.kernel.ports import LOOPBACK_NAMES, bracketed

logger = logging.getLogger(__name__)


class Shown(Protocol):
    """A running server, here or on another host."""

    def status(self) -> dict[str, Any]:
        """The status JSON."""

    def metrics(self) -> bytes:
        """The metrics in Prometheus' text format."""

    def ailing(self) -> list[str]:
        """Why the server does not do all of its work, a sentence each; empty: it does."""


class HttpService:
    """uvicorn in a thread of its own; the port is bound on construction.

    Before `show` every page answers 503 `restoring`.
    """

    def __init__(self, *, host: str, port: int) -> None:
        self._pages: Shown | None = None
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            # From here on a client waits for its answer instead of being refused.
            self._socket.listen(128)
        except OSError as error:
            self._socket.close()
            raise PlatformError(
                f"port {port} of {host} (setting http_port): {error.strerror}."
            ) from error
        bound = self._socket.getsockname()[1]
        self.url = f"http://{bracketed(host)}:{bound}"
        config = uvicorn.Config(
            self._app(host),
            log_config=None,
            access_log=False,
            lifespan="off",
            http=BoundedProtocol,
            ws="none",
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="http", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def show(self, pages: Shown) -> None:
        self._pages = pages

    def stop(self) -> None:
        """Stop serving and free the port."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._socket.close()

    def _app(self, host: str) -> FastAPI:
        app = FastAPI(
            title="Yeoron parameter server", docs_url=None, redoc_url=None, openapi_url=None
        )
        # A page of another site, open in a browser here, may have its name resolved to loopback.
        app.add_middleware(
            TrustedHostMiddleware, allowed_hosts=[host, f"[{host}]", *LOOPBACK_NAMES]
        )

        @app.exception_handler(ExchangeError)
        def away(request: Request, error: Exception) -> Response:
            """The server is on another host, and does not answer this one."""
            del request
            answer = {"status": "away", "reasons": [str(error)]}
            return JSONResponse(answer, status_code=503, headers={"Retry-After": "5"})

        @app.get("/health")
        def health() -> Response:
            if self._pages is None:
                return _restoring()
            reasons = self._pages.ailing()
            if reasons:
                return JSONResponse({"status": "ailing", "reasons": reasons}, status_code=503)
            return JSONResponse({"status": "ok"})

        @app.get("/status")
        def show_status() -> Response:
            return _restoring() if self._pages is None else JSONResponse(self._pages.status())

        @app.get("/metrics")
        def show_metrics() -> Response:
            if self._pages is None:
                return _restoring()
            return Response(self._pages.metrics(), media_type=CONTENT_TYPE_LATEST)

        return app


def _restoring() -> Response:
    return JSONResponse({"status": "restoring"}, status_code=503, headers={"Retry-After": "1"})
