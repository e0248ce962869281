"""kill -9 of a group that follows, of the leading one, and of both with a node."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from killing import (
    CLIENT,
    MODEL,
    NODE,
    PATIENCE_S,
    Chaos,
    chaos,
    corpus,
    learnt_once,
)

from embedding.server.config import ServerConfig
from embedding.stream.config import StreamConfig
from embedding.text.config import TextConfig
from embedding.worker.process.node import run_node
from embedding.worker.spec import CorpusShare, NodeSpec
from serving import start_server
from waiting import until
from yeoron_lab.ports import lasting_port
from yeoron_lab.settings import GroupConfig

pytestmark = [pytest.mark.laboratory, pytest.mark.slow, pytest.mark.timeout(1800)]


class Group:
    """A group that follows, in a process of its own that can be killed."""

    def __init__(self, found: Chaos) -> None:
        place = GroupConfig(leader=found.client.location, name="b", every_s=0.2)
        config = {"port": lasting_port(), "min_count": 2, "config_digest": MODEL.digest()}
        self.config = ServerConfig(**config, group=place)
        self.location = f"grpc://127.0.0.1:{self.config.port}"
        self.policy = found.policy
        self.process: BaseProcess | None = None

    def serve(self) -> None:
        self.process = start_server(self.config, dim=MODEL.dim, policy=self.policy)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.join(300)


@contextmanager
def grouped(folder: Path, policy: str, lines: int) -> Iterator[tuple[Chaos, Group, Counter[str]]]:
    """A leader with node n0 and a group with node n1, which learn a corpus."""
    path = folder / "c.txt"
    words = corpus(path, lines)
    with chaos(folder, policy) as (found, pool):
        group = Group(found)
        group.serve()
        try:
            for i, server in enumerate((found.client.location, group.location)):
                learn(found, pool, path, i, server)
            yield found, group, words
        finally:
            found.stop.set()
            for node in found.nodes:
                node.exception(timeout=PATIENCE_S)
            group.kill()


def learn(found: Chaos, pool: ThreadPoolExecutor, path: Path, index: int, server: str) -> None:
    spec = NodeSpec(
        name=f"n{index}",
        server=server,
        # As `yeoron train --server-groups` places it: no other node comes to its server.
        corpus=CorpusShare(path=str(path), index=index, count=2, peers=1),
        text=TextConfig(tokenizer="whitespace", mask=False),
        model=MODEL,
        node=NODE,
        stream=StreamConfig().model_copy(update={"queue_tokens": 4_000}),
        exchange=CLIENT,
    )
    found.nodes.append(pool.submit(run_node, spec, found.stop.is_set))


def ended(found: Chaos, words: Counter[str]) -> None:
    found.ended()
    # A leader that was started again hears of them with the next exchange after their pushes.
    until(lambda: {"n0", "n1"} <= set(found.client.status()["nodes"]))
    status = learnt_once(found, words)
    assert {name: node.get("group") for name, node in status["nodes"].items()} == {
        "n0": None,
        "n1": "b",
    }


def kill_gradient(node: str) -> None:
    """kill -9 the process of a node that learns."""
    for each in multiprocessing.active_children():
        if each.name == f"{node}-gradient":
            each.kill()
            return
    raise AssertionError(f"{node} has ended already")


def test_groups_are_killed_one_after_the_other(tmp_path: Path) -> None:
    with grouped(tmp_path, "ssp", 20_000) as (found, group, words):
        found.reach(words.total() * 0.15)
        kill_gradient("n1")
        group.kill()
        group.serve()
        found.reach(words.total() * 0.35)
        found.kill_server()
        found.serve()
        found.reach(words.total() * 0.55)
        group.kill()
        found.kill_server()
        found.serve()
        group.serve()
        ended(found, words)
