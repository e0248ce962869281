"""Running the simulated web: one uvicorn on one socket."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from embedding.kernel.errors import PlatformError
from embedding.kernel.ports import bracketed, is_loopback
from embedding.simweb.app import create_app
from embedding.simweb.config import SimwebConfig
from embedding.simweb.resolve import resolve_corpus

log = logging.getLogger(__name__)


def serve(config: SimwebConfig, ready: Callable[[str], None] | None = None) -> None:
    """Play the corpus until interrupted; `ready` is called with the address before serving.

    Raises InputError for a corpus that cannot be read, PlatformError for a taken port.
    """
    corpus = resolve_corpus(config)
    with listen(config) as listener:
        url = address(listener)
        log.info("simweb at %s plays %d documents", url, len(corpus.documents))
        if not is_loopback(config.host):
            log.warning("simweb listens on %s: other machines can reach it.", config.host)
        if ready is not None:
            ready(url)
        server(create_app(config, corpus)).run(sockets=[listener])


def server(app: FastAPI) -> uvicorn.Server:
    """A uvicorn server for the application; open requests are cut off a second after the end."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
            # Longer than a crawler keeps a connection: else it asks on one that is being closed.
            timeout_keep_alive=60,
        )
    )


def listen(config: SimwebConfig) -> socket.socket:
    """A bound socket; raises PlatformError that names the port and the setting."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise PlatformError(
            f"simweb: cannot listen on {config.host} port {config.port} ({error.strerror}); "
            "set simweb.port to a free port (0 takes any) or simweb.host to an own address."
        ) from error
    return listener


def address(listener: socket.socket) -> str:
    """http://HOST:PORT of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{bracketed(host)}:{port}"
