"""Runs inside a network namespace: the control host of `test_several_hosts.py`, and its state.

`hostworld.py start FILE`: without Airflow and MLflow, which stay on loopback. The frontier is a
SQLite file, which hosts that share a disk can all open.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import httpx

from embedding.cluster import attach_pool, dask_client, publish_sources
from embedding.kernel.private import private_folder
from embedding.platform.hosts import ensure_authority, invite
from embedding.platform.operate import all_services
from embedding.platform.supervisor import Supervisor
from embedding.settings import SETTINGS_VARIABLE, Settings, load_settings
from embedding.sources.config import load_sources


def start(settings: Settings) -> None:
    private_folder(settings.paths.home)
    ensure_authority(settings)
    chosen = [
        service
        for service in all_services(settings)
        if service.name in {"server", "dask-scheduler", "door"}
    ]
    settings.paths.frontier.mkdir(parents=True, exist_ok=True, mode=0o700)
    supervisor = Supervisor(settings.paths.home, settings.paths.logs)
    supervisor.write(chosen)
    supervisor.start()
    supervisor.wait_ready(chosen, timeout=300)


def status(settings: Settings) -> None:
    answer = httpx.get(settings.server_status_url, timeout=30, trust_env=False)
    sys.stdout.write(answer.text + "\n")


def workers(settings: Settings) -> None:
    """Address of each worker, with the keys that it runs."""
    with dask_client(settings) as client:
        running = {worker: list(keys) for worker, keys in client.processing().items()}
    sys.stdout.write(json.dumps(running) + "\n")


def joining(settings: Settings) -> None:
    sys.stdout.write(invite(settings, 1).model_dump_json() + "\n")


def attach(settings: Settings) -> None:
    attach_pool(settings)


def publish(settings: Settings) -> None:
    publish_sources(settings, load_sources(settings.paths.sources))


if __name__ == "__main__":
    os.environ[SETTINGS_VARIABLE] = sys.argv[2]  # services inherit it
    {each.__name__: each for each in (start, status, workers, joining, attach, publish)}[
        sys.argv[1]
    ](load_settings(Path(sys.argv[2])))
