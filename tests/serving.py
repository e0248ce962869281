"""Parameter servers in processes of their own, which can be killed."""

from __future__ import annotations

import os
from multiprocessing.process import BaseProcess

from embedding.server.config import ServerConfig, SyncConfig
from embedding.worker.process.forking import OF_A_CORPUS, adopt, processes


def start_server(
    config: ServerConfig, *, dim: int, policy: str = "ssp", patience_s: float = 300.0
) -> BaseProcess:
    """Start one: a fork of the nodes' fork server, for importing torch takes longer than a test.

    patience_s  how long its shards and groups may take to start: the machine may be busy
    """
    context = processes((*OF_A_CORPUS, "embedding.server.service:ParameterServer"))
    given = (config.model_dump_json(), policy, dim, patience_s, dict(os.environ))
    process = context.Process(target=_serve, args=given, name="server")
    process.start()
    return process


def _serve(
    config: str, policy: str, dim: int, patience_s: float, environment: dict[str, str]
) -> None:
    adopt(environment)
    from embedding.server.service import ParameterServer
    from yeoron_lab.groups import link
    from yeoron_lab.shards import sharding

    sharding.START_S = link.GROUP_START_S = patience_s
    chosen = ServerConfig.model_validate_json(config)
    ParameterServer(chosen, SyncConfig(policy=policy), dim=dim).serve_forever()
