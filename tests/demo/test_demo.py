"""What the demo waits for before it plays."""

from __future__ import annotations

import pytest

from embedding.kernel.errors import PlatformError
from embedding.settings import ClusterConfig, Settings
from yeoron_demo import demo

READS = {"event_now": 1.0, "prepared": False, "warm": True}
COMPILES = {"event_now": 1.0, "prepared": True, "warm": False}
READY = {"event_now": 1.0, "prepared": True, "warm": True}


class Answer:
    def __init__(self, reports: list[dict[str, object] | None]) -> None:
        self.nodes = {f"n{at}": {"report": report} for at, report in enumerate(reports)}

    def json(self) -> dict[str, object]:
        return {"nodes": self.nodes}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """What the server answers, one after another; a second passes between two answers."""
    answers: list[Answer] = []
    now = [0.0]
    monkeypatch.setattr(demo.httpx, "get", lambda *_, **__: answers.pop(0))
    monkeypatch.setattr(demo.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(demo.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return answers


def test_play_begins_when_every_node_reads_and_has_its_analyser_and_kernels(asked):
    settings = Settings(cluster=ClusterConfig(nodes=2))
    asked += [Answer([]), Answer([None, READS]), Answer([READS, READY])]
    asked += [Answer([COMPILES, READY]), Answer([READY, READY])]
    demo._wait_for_nodes(settings)
    assert not asked


def test_a_node_that_is_never_ready_is_told(asked):
    settings = Settings(cluster=ClusterConfig(nodes=2))
    asked += [Answer([READS, READY])] * 9
    with pytest.raises(PlatformError, match="1 of 2 nodes are ready after 3 s"):
        demo._wait_for_nodes(settings, timeout=3.0)
