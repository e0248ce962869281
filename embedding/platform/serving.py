"""The parameter server, wired from the settings."""

from __future__ import annotations

from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer
from embedding.settings import Settings


def server_for(settings: Settings, server: ServerConfig, sync: SyncConfig) -> ParameterServer:
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
    )
