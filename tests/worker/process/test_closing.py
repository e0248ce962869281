"""Which window a node reads again, and when it hands in how that used words."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest

from embedding.exchange.payload import Inherited
from embedding.exchange.protocol import Ask
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import TokenBlock
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.stream.queue import BlockQueue
from embedding.worker.config import NodeConfig
from embedding.worker.learning.ticks import Close
from embedding.worker.process.gradient import GradientProcess
from embedding.worker.process.rehearsing import Closings
from embedding.worker.spec import NodeSpec
from waiting import until

MOST_REFUSALS = 3

MODEL = ModelConfig(dim=8, sample=0.0)
NODE = NodeConfig(block_tokens=64, flush_seconds=0.1, rehearsal_passes=0).model_copy(
    update={"report_seconds": 0.05}
)
A = Inherited("a", "뉴스", 3)
B = Inherited("b", "뉴스", 2)


def due(closings: Closings) -> Close:
    found = closings.due(None)
    assert found is not None
    return found


def test_a_window_is_handed_in_once_and_again_when_more_of_it_was_read() -> None:
    seen = {7: 5}
    closings = Closings(seen=lambda window: seen.get(window, 0))
    assert closings.due(None) is None
    closings.asked([Ask(7, False)])
    assert closings.due(7) is None, "it is rehearsed"
    assert closings.due(8) == Close(7)
    closings.asked([Ask(7, True)])
    assert closings.due(7) == Close(7), "the server waits for rehearsal no longer"
    closings.give(Close(7))
    assert closings.due(None) is None, "also when the server has not applied it yet"
    seen[7] = 6
    closings.give(due(closings))
    assert closings.due(None) is None


def test_a_node_speaks_on_for_those_whom_it_once_spoke_for() -> None:
    ready: dict[Ask, tuple[Inherited, ...]] = {}
    closings = Closings(inherits=ready.get)
    first = Ask(7, True, (("a", "뉴스"),))
    closings.asked([first])
    assert closings.due(None) is None, "it has yet to read the text"
    ready[first] = (A,)
    closings.give(due(closings))
    second = Ask(7, True, (("b", "뉴스"),))
    ready[second] = (B,)
    closings.asked([second])
    assert closings.due(None) == Close(7, inherited=(A, B))


def test_what_is_refused_is_tried_again_but_not_without_end() -> None:
    closings = Closings()
    closings.asked([Ask(7, True)])
    for _ in range(MOST_REFUSALS - 1):
        closings.give(due(closings))
        closings.go_back(RefusedError("no"))
    closings.give(due(closings))
    with pytest.raises(RefusedError, match="no"):
        closings.go_back(RefusedError("no"))


def test_a_node_hands_in_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ServerConfig(min_count=1, min_authors=1, min_sources=1, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=MODEL.dim) as server:
        crawler, gradient = BlockQueue.pair(10_000, multiprocessing.get_context("spawn"))
        stop = threading.Event()
        spec = NodeSpec(name="n0", server=server.location, model=MODEL, node=NODE, incarnation="a")
        process = GradientProcess(spec, gradient, stop)
        asked = threading.Event()
        state, usage = server.state, server.state.accounts.usage
        monkeypatch.setattr(
            server.snapshotter, "asks", lambda _: [[0, True, []]] if asked.is_set() else []
        )
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()

        def put(tick: int) -> None:
            random = np.random.default_rng(tick)
            text = [[f"낱말{i}" for i in random.permutation(20)] for _ in range(5)]
            block = TokenBlock.build("뉴스", [text], published=[9.0], keys=[str(tick)])
            crawler.put(block, timeout=60)

        try:
            for tick in range(5):
                put(tick)
            until(lambda: process.counters.documents == 5)
            assert state.wait([0]).readers == ("n0",)
            assert not usage.held([0])
            asked.set()
            until(lambda: bool(usage.held([0])))
            assert server.status()["usage"]["held"] == 20
            assert not state.wait([0])
            put(5)
            until(lambda: sum(each.documents.sum() for each in usage.held([0])) == 2 * 6 * 20)
        finally:
            stop.set()
            crawler.close()
            thread.join(60)
    assert not thread.is_alive()
