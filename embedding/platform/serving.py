"""The parameter server, wired from the settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from embedding.kernel.private import private_folder
from embedding.platform.hosts import ensure_authority, ensure_tokens, joined_host, on_its_host
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.figures.http import HttpService
from embedding.server.flight.credentials import read_credentials
from embedding.server.recovery.rewriting import roll_back_state
from embedding.server.service import ParameterServer
from embedding.settings import Settings


def serve(
    settings: Settings,
    server: ServerConfig,
    sync: SyncConfig,
    ready: Callable[[ParameterServer], None],
) -> None:
    """Run a server until SIGTERM, and again after a rollback.

    Its pages answer `restoring` until it is `ready`.
    """
    private_folder(settings.paths.home)
    if joined_host(settings.paths) is not None:
        settings = on_its_host(settings)
    elif settings.hosts.address:
        ensure_authority(settings)
    server = settings.certified(server)
    read_credentials(server)
    # The home's own tokens where none are given: other users of the machine reach loopback, too. A
    # token file of one's own says who may do what, and nothing is added to it.
    if server.token_file is None:
        node, operator = ensure_tokens(settings.paths)
        tokens = {"token_file": node, "operator_token_file": operator}
        server = server.model_copy(update=tokens)
    http = HttpService(host=server.http_host, port=server.http_port)
    http.start()
    try:
        running = server_for(settings, server, sync, http=http)
        running.serve_forever(lambda: ready(running))
        back_to = running.wants_back
    finally:
        http.stop()
    if back_to is not None:
        del running  # its tables go before those of the snapshot come
        seed = settings.model.seed
        roll_back_state(_of(settings, server), back_to, dim=settings.model.width, seed=seed)
        # A process of its own again: nothing of the old tables is left in memory.
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606


def server_for(
    settings: Settings, server: ServerConfig, sync: SyncConfig, *, http: HttpService | None = None
) -> ParameterServer:
    """The parameter server, its state under the settings' home unless set otherwise."""
    return ParameterServer(
        _of(settings, server),
        sync,
        dim=settings.model.width,
        seed=settings.model.seed,
        buckets=settings.model.gram_rows,
        biases=settings.model.biases,
        http=http,
    )


def _of(settings: Settings, server: ServerConfig) -> ServerConfig:
    defaults = {
        "state_dir": server.state_dir or settings.paths.checkpoints,
        "snapshots": server.snapshots or settings.snapshot_store,
        "config_digest": server.config_digest or settings.digest(),
    }
    return server.model_copy(update=defaults)
