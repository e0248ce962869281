"""Running the simulated web: one uvicorn on one socket."""

from __future__ import annotations

import logging
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from embedding.kernel.ports import address_of, is_loopback, listen_on
from yeoron_simweb.app import create_app
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.resolve import resolve_corpus

log = logging.getLogger(__name__)


def serve(config: SimwebConfig, ready: Callable[[str], None] | None = None) -> None:
    """Play the corpus until interrupted; `ready` is called with the address before serving.

    Raises InputError for a corpus that cannot be read, ConfigError for a taken port.
    """
    corpus = resolve_corpus(config)
    with listen_on(config.host, config.port) as listener:
        url = f"http://{address_of(listener)}"
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
