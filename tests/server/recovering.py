"""Servers that end as kill -9 would end them."""

from __future__ import annotations

from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer


def config(tmp_path, **changes) -> ServerConfig:
    defaults = {"state_dir": tmp_path / "state", "min_count": 2, "checkpoint_every_s": 600.0}
    return ServerConfig(**{**defaults, **changes})


def crash(server: ParameterServer) -> None:
    """End a server in this process as kill -9 would: without flush and last checkpoint."""
    server.state.flush = lambda: None
    if server.recovery is not None:
        server.recovery._try_write = lambda: "crashed"
    server.stop()
