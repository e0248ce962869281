"""The parameter server, wired from the settings."""

from __future__ import annotations

from collections.abc import Callable

from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.figures.http import HttpService
from embedding.server.flight.credentials import read_credentials
from embedding.server.service import ParameterServer
from embedding.settings import Settings


def serve(
    settings: Settings,
    server: ServerConfig,
    sync: SyncConfig,
    ready: Callable[[ParameterServer], None],
) -> None:
    """Run a server until SIGTERM; its pages answer `restoring` until it is `ready`."""
    read_credentials(server)
    http = HttpService(host=server.http_host, port=server.http_port)
    http.start()
    try:
        running = server_for(settings, server, sync, http=http)
        running.serve_forever(lambda: ready(running))
    finally:
        http.stop()


def server_for(
    settings: Settings, server: ServerConfig, sync: SyncConfig, *, http: HttpService | None = None
) -> ParameterServer:
    """The parameter server, its state under the settings' home unless set otherwise."""
    defaults = {
        "state_dir": server.state_dir or settings.paths.checkpoints,
        "snapshots": server.snapshots or str(settings.paths.snapshots),
        "config_digest": server.config_digest or settings.digest(),
    }
    return ParameterServer(
        server.model_copy(update=defaults),
        sync,
        dim=settings.model.width,
        seed=settings.model.seed,
        buckets=settings.model.gram_rows,
        biases=settings.model.biases,
        http=http,
    )
