"""A node in a process of its own, the server that it trains with, and what it crawls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from embedding.kernel.records import Window
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.sources.config import SourceConfig

MODEL = ModelConfig(dim=8, sample=0.0)
RUN = """
import signal, sys, threading
from embedding.worker.process.node import run_node
from embedding.worker.spec import NodeSpec
if __name__ == "__main__":
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run_node(NodeSpec.model_validate_json(sys.argv[1]), stop.is_set)
"""


def sources(base: str) -> tuple[SourceConfig, ...]:
    return (
        SourceConfig(name="feed", kind="feed", url=f"{base}/news/politics/rss.xml", every=0.5),
        SourceConfig(
            name="comments",
            kind="comments",
            url=f"{base}/comments/api?limit=50",
            items="comments",
            text="body",
            time="created_at",
            link="article_url",
            next="next_cursor",
            cursor="cursor",
            every=0.5,
        ),
    )


@contextmanager
def serving(folder: Path) -> Iterator[ParameterServer]:
    """A server whose state and snapshots lie in `folder`."""
    config = ServerConfig(
        min_count=1,
        config_digest=MODEL.digest(),
        state_dir=folder / "state",
        snapshots=str(folder / "store"),
        checkpoint_every_s=0.5,
    )
    with running_server(config, SyncConfig(policy="asp"), dim=8) as found:
        yield found


def windows(server: ParameterServer) -> list[Window]:
    found = server.status()["windows"].values()
    starts = [datetime.fromisoformat(each["start"]).astimezone(UTC) for each in found]
    ends = [datetime.fromisoformat(each["end"]).astimezone(UTC) for each in found]
    return [Window(min(starts), max(ends))]
