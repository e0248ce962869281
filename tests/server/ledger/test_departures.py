"""No window is cut before the counts of every node that reads for it are in the books."""

from __future__ import annotations

import multiprocessing
import threading
from datetime import UTC, datetime

import pytest
from named import named

from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.kernel.records import Calendar, WindowUnit
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.ledger.sequence import Departures, Ledger
from embedding.server.parts import Part
from embedding.server.rowstore import RowShape
from embedding.server.service import ParameterServer, running_server
from embedding.server.state import ServerState
from embedding.server.words.windows import WindowTracker
from embedding.snapshots.store import SnapshotStore
from embedding.stream.queue import BlockQueue
from embedding.worker.config import NodeConfig
from embedding.worker.process.gradient import GradientProcess
from embedding.worker.spec import NodeSpec
from waiting import until

DIM, DAY = 4, 86_400
AT = int(datetime(2020, 2, 1, tzinfo=UTC).timestamp())


def config(tmp_path, **changes) -> ServerConfig:
    return ServerConfig(
        **{
            "snapshots": str(tmp_path / "snapshots"),
            "cut": "watermark",
            "min_count": 1,
            "in_step": True,
            **changes,
        }
    )


def read(node, day: int, n: int = 1) -> None:
    at = AT + day * DAY
    node.push(counts=named(["말"], n, window=at), window=at, published=at + 60.0)


def counted(server: ParameterServer, tmp_path) -> dict[str, int]:
    """Tokens of the first window, once it is cut."""
    store = SnapshotStore(str(tmp_path / "snapshots"))
    until(lambda: server.snapshotter.refs())
    return store.open(server.snapshotter.refs()[0].id).manifest.tokens


@pytest.mark.parametrize("shards", [1, 2])
def test_a_window_waits_for_a_node_that_greets_and_has_pushed_nothing_yet(
    tmp_path, connect, shards
):
    with running_server(config(tmp_path, shards=shards), dim=DIM) as server:
        for name in ("n0", "n1"):
            server.state.report(name, {"sources": {"뉴스": {"pending": 1}}})
        slow, quick = connect(server, "n0"), connect(server, "n1")
        read(quick, 1)
        assert server.state.due() == []
        read(slow, 0)
        assert server.state.due() == []
        read(slow, 0, n=2)
        read(slow, 1)
        assert counted(server, tmp_path) == {"뉴스": 3}


def test_a_window_waits_for_what_the_policy_holds_back_of_a_node_that_said_goodbye(
    tmp_path, connect
):
    with running_server(config(tmp_path), SyncConfig(policy="bsp"), dim=DIM) as server:
        slow, quick = connect(server, "n0"), connect(server, "n1")
        for node in (slow, quick):
            node.words("말")
            node.pull()
        read(slow, 0)
        read(quick, 1)
        slow.pull()
        quick.pull()
        read(slow, 0, n=2)  # held back until the other has pushed
        slow.client.close()
        assert server.status()["tokens"] == 2
        assert server.state.due() == []
        read(quick, 1)
        assert counted(server, tmp_path) == {"뉴스": 3}
        # Nobody waits for it any longer either.
        assert "n0" not in server.state.accounts.tracker.sources["뉴스"].heard
        assert server.status()["sources"]["뉴스"]["late_documents"] == 0


def test_a_node_that_comes_back_before_its_pushes_are_applied_has_not_gone():
    ledger, tracker = Ledger(), WindowTracker(Calendar(WindowUnit.DAY), idle_s=300.0)
    departures = Departures(ledger, tracker)
    tracker.report("n0", {"뉴스": 1}, now=0.0)
    ledger.accept("n0", 1)
    departures.gone("n0")
    departures.back("n0")
    ledger.apply("n0", 1)
    departures.advance()
    assert tracker.sources["뉴스"].pending == {"n0": 1}


def test_a_node_of_another_server_has_gone_once_what_that_held_back_has_come():
    ledger, tracker = Ledger(), WindowTracker(Calendar(WindowUnit.DAY), idle_s=300.0)
    departures = Departures(ledger, tracker)
    tracker.report("n0", {"뉴스": 1}, now=0.0)
    ledger.apply("n0", 1)
    departures.gone("n0", 2)
    assert tracker.sources["뉴스"].pending == {"n0": 1}
    ledger.apply("n0", 2)
    departures.advance()
    assert tracker.sources["뉴스"].pending == {}


def test_a_report_that_comes_after_the_goodbye_makes_nobody_wait(connect):
    """Of a thread of the node that was held up, and sends it only then."""
    with running_server(ServerConfig(min_count=1), dim=DIM) as server:
        state = server.state
        late = {"sources": {"뉴스": {"pending": 1}}}
        node = connect(server, "n0")
        node.client.report(late)
        assert state.accounts.tracker.sources["뉴스"].pending == {"n0": 1}
        node.client.close()
        until(lambda: server.status()["nodes"]["n0"]["state"] == "gone")
        state.report("n0", late)
        assert state.accounts.tracker.sources["뉴스"].pending == {}
        again = connect(server, "n0")
        again.client.report(late)
        assert state.accounts.tracker.sources["뉴스"].pending == {"n0": 1}


class Ticking(Part):
    """A part whose tick is counted, and fails."""

    ticks = 0

    def tick(self, now: float) -> None:
        self.ticks += 1
        raise OSError("no space left on device")


def test_a_part_that_fails_loses_no_departure_and_holds_up_no_other_part(caplog):
    state = ServerState(ServerConfig(), SyncConfig(policy="asp"), RowShape(DIM, seed=1))
    parts = [Ticking(), Ticking()]
    state.parts = {"first": parts[0], **state.parts, "last": parts[1]}
    state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)
    state.accounts.tracker.report("n0", {"뉴스": 1}, now=0.0)
    assert "n0" in state.accounts.tracker.nodes
    state.machine.board.members["n0"].last_seen -= 10_000.0
    state.tick()
    assert "n0" not in state.accounts.tracker.nodes
    assert [part.ticks for part in parts] == [1, 1]
    assert "last: the server goes on" in caplog.text


@pytest.mark.parametrize(("dies", "state"), [(True, "idle"), (False, "gone")])
def test_a_node_whose_reader_died_says_no_goodbye_as_it_is_started_again(dies: bool, state: str):
    model = ModelConfig(dim=8, sample=0.0)
    node = NodeConfig(block_tokens=64, flush_seconds=0.1, replay_ratio=0.0).model_copy(
        update={"report_seconds": 0.2}
    )
    server_config = ServerConfig(
        min_count=1, min_authors=1, min_sources=1, config_digest=model.digest()
    )
    with running_server(server_config, SyncConfig(policy="asp"), dim=model.dim) as server:
        crawler, gradient = BlockQueue.pair(10_000, multiprocessing.get_context("spawn"))
        spec = NodeSpec(name="n0", server=server.location, model=model, node=node)
        process = GradientProcess(spec, gradient, threading.Event())
        server.state.report("n0", {"sources": {"뉴스": {"pending": 1}}})
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()
        (crawler.release if dies else crawler.close)()
        thread.join(60)
        assert not thread.is_alive()
        until(lambda: server.status()["nodes"]["n0"]["state"] == state)
        assert server.state.accounts.tracker.sources["뉴스"].pending == ({"n0": 1} if dies else {})
