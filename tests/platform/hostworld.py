"""Runs inside a network namespace: the control host of tests of several hosts, and its state.

`hostworld.py FILE`: a question a line, `["status"]`, and its answer, until the input ends.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from embedding.cluster import attach_pool, dask_client, publish_sources
from embedding.exchange.peer import Channel
from embedding.kernel.private import private_folder
from embedding.kernel.records import Window
from embedding.platform.hosts import ensure_authority, invite
from embedding.platform.operate import all_services
from embedding.platform.supervisor import Supervisor
from embedding.settings import SETTINGS_VARIABLE, Settings, load_settings
from embedding.snapshots.evidence import EvidenceStore
from embedding.snapshots.store import SnapshotStore
from embedding.sources.config import load_sources


def start(settings: Settings) -> None:
    """Without Airflow and MLflow, which stay on loopback."""
    private_folder(settings.paths.home)
    ensure_authority(settings)
    chosen = [
        service
        for service in all_services(settings)
        if service.name in {"server", "server-pages", "dask-scheduler", "door"}
    ]
    settings.paths.frontier.mkdir(parents=True, exist_ok=True, mode=0o700)
    supervisor = Supervisor(settings.paths.home, settings.paths.logs)
    supervisor.write(chosen)
    supervisor.start()
    supervisor.wait_ready(chosen, timeout=300)


def status(settings: Settings) -> Any:
    return httpx.get(settings.server_status_url, timeout=60, trust_env=False).json()


def workers(settings: Settings) -> Any:
    """Address of each worker, with the keys that it runs."""
    with dask_client(settings) as client:
        return {worker: list(keys) for worker, keys in client.processing().items()}


def joining(settings: Settings, role: str = "node") -> Any:
    return invite(settings, 1, role).model_dump(mode="json")


def cut(settings: Settings, start: str, end: str) -> Any:
    """Publish a window, and what is found of it in the store and in the evidence here."""
    window = Window(datetime.fromisoformat(start), datetime.fromisoformat(end))
    channel = Channel(settings.server_location, settings.line(operator=True))
    asked = {"start": window.start.isoformat(), "end": window.end.isoformat()}
    made = channel.action("cut", asked, 120)
    channel.close()
    held = SnapshotStore(settings.snapshot_store).open(made["id"])
    page = EvidenceStore(settings.page.evidence)
    found = {word: page.find(word, window.start, window.end) for word in held.words[:50]}
    seen = {word: [one.url for one in each] for word, each in found.items() if each}
    return {"words": len(held.words), "evidence": seen}


def attach(settings: Settings) -> None:
    attach_pool(settings)


def publish(settings: Settings) -> None:
    publish_sources(settings, load_sources(settings.paths.sources))


def answer(file: Path) -> None:
    """Importing what asks takes a second: a test asks many times."""
    questions = {
        each.__name__: each for each in (start, attach, publish, status, workers, joining, cut)
    }
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        found = questions[name](load_settings(file), *arguments)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    os.environ[SETTINGS_VARIABLE] = sys.argv[1]  # services inherit it
    answer(Path(sys.argv[1]))
