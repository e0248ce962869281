"""Ticks that overlap, against a real server: the same result, and never a deadlock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.errors import AheadError, RefusedError, YeoronError
from embedding.kernel.records import Calendar, FloatArray, Table, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerLink, LearnerSetup
from embedding.worker.learning.ticks import Tick
from embedding.worker.process.pipeline import Pipeline, When

DIM, TICKS, WORDS = 8, 12, [f"말{i}" for i in range(40)]
MODEL = ModelConfig(dim=DIM, window=2, sample=0.0, learning_rate=0.1)
LINE = ExchangeConfig(rows="float32", compression="none").model_copy(
    update={"pull_timeout_s": 60.0, "request_timeout_s": 60.0}
)
NEVER = 10_000
"""Blocks after which the vocabulary is looked at again."""


def block(node: str, tick: int) -> TokenBlock:
    rng = np.random.default_rng([ord(node[-1]), tick])
    texts = [[[WORDS[i] for i in rng.integers(0, len(WORDS), 15)]] for _ in range(6)]
    keys = [f"{node}/{tick}/{i}" for i in range(len(texts))]
    return TokenBlock.build("뉴스", texts, published=[0.0] * len(texts), keys=keys)


@pytest.fixture
def make_server() -> Iterator[Callable[..., ParameterServer]]:
    with ExitStack() as stack:

        def make(**sync: Any) -> ParameterServer:
            config = ServerConfig(min_count=1, half_life_tokens=None, config_digest=MODEL.digest())
            running = running_server(config, SyncConfig(**sync), dim=DIM, seed=5)
            server = stack.enter_context(running)
            count_first(server)
            return server

        yield make


class Listening(ParameterClient):
    """Notes in which order a node pulled and pushed."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.said: list[str] = []
        self.refuse_at = 0
        self.tried = 0

    def pull(self, request: PullRequest) -> Any:
        try:
            rows = super().pull(request)
        except AheadError:
            self.said.append("ahead")
            raise
        if len(request.ids[Table.IN]):
            self.said.append("pull")
        return rows

    def push(self, push: Push) -> Any:
        self.tried += 1
        if self.tried == self.refuse_at:
            raise RefusedError("for the test's sake.")
        ack = super().push(push)
        self.said.append("push")
        return ack


def greet(server: ParameterServer, name: str, stack: ExitStack) -> Listening:
    client = Listening(server.location, node=name, config=LINE, config_digest=MODEL.digest())
    stack.callback(client.close)
    client.hello()
    return client


def count_first(server: ParameterServer) -> None:
    """Every word has a row and a large count, so that noise does not hang on when it is read."""
    with ExitStack() as stack:
        client = greet(server, "counter", stack)
        many = np.full(len(WORDS), 100_000, dtype=np.int64)
        ids = client.admit(WORDS, many)
        counts = BlockCounts((CountGroup("뉴스", 0, len(ids)),), ids, [], many, np.ones_like(many))
        client.push(Push("counter", 1, 0, counts=counts))


def learner(client: ParameterClient, name: str, *, replay: bool = False) -> Learner:
    config = NodeConfig(replay_ratio=1.0 if replay else 0.0).model_copy(
        update={"vocabulary_blocks": NEVER, "curvature": 0.0}
    )
    memory = UniformReplay(5_000, 3) if replay else None
    return Learner(
        client,
        make_trainer(MODEL),
        memory,
        LearnerSetup(node=name, model=MODEL, config=config, calendar=Calendar(WindowUnit.DAY)),
    )


def tables(server: ParameterServer) -> dict[Table, FloatArray]:
    state = server.state
    slots = np.arange(state.vocabulary.rows)
    with state.lock:
        return {table: state.tables.read(table, slots) for table in (Table.IN, Table.OUT)}


def trained_alone(
    sync: SyncConfig, when: When, *, replay: bool = False
) -> tuple[dict[Table, FloatArray], list[str]]:
    """Tables after one node has learnt TICKS blocks, and what it said."""
    config = ServerConfig(min_count=1, half_life_tokens=None, config_digest=MODEL.digest())
    with running_server(config, sync, dim=DIM, seed=5) as server, ExitStack() as stack:
        count_first(server)
        client = greet(server, "n0", stack)
        node = learner(client, "n0", replay=replay)
        told: list[object] = []
        blocks = iter([block("n0", tick)] for tick in range(TICKS))
        Pipeline(node, blocks, told.append, when=lambda: when, in_order=True).run()
        assert [type(each) for each in told] == [Tick] * TICKS
        assert server.status()["documents"] == TICKS * 6
        return tables(server), client.said


def same(one: dict[Table, FloatArray], other: dict[Table, FloatArray]) -> bool:
    return all(np.allclose(one[t], other[t], rtol=1e-4, atol=1e-6) for t in one)


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("when", ["ahead", "late"])
def test_a_lone_node_that_overlaps_learns_what_one_that_does_not_learns(
    when: When, replay: bool
) -> None:
    """It adds its own last delta to rows that were pulled before that was pushed."""
    asp = SyncConfig(policy="asp")
    plain, said = trained_alone(asp, "now", replay=replay)
    assert said == ["pull", "push"] * TICKS
    overlapped, said = trained_alone(asp, when, replay=replay)
    if when == "ahead":
        assert said[:3] == ["pull", "pull", "push"]
        assert said == ["pull", *["pull", "push"] * (TICKS - 1), "push"]
    assert same(plain, overlapped)
    assert plain[Table.OUT].any()


def test_without_its_own_last_delta_it_would_learn_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that the test above can fail."""
    asp = SyncConfig(policy="asp")
    plain, _ = trained_alone(asp, "now")
    monkeypatch.setattr(LearnerLink, "unseen", lambda self, rows: {})
    forgetful, _ = trained_alone(asp, "ahead")
    assert not same(plain, forgetful)


def test_bsp_does_not_let_a_node_read_ahead_and_it_learns_all_the_same() -> None:
    bsp = SyncConfig(policy="bsp")
    plain, _ = trained_alone(bsp, "now")
    overlapped, said = trained_alone(bsp, "ahead")
    # Before each push its own rows are pulled by the thread that trains, and those of the next
    # block are refused to the thread that prepares it: which of the two comes first is theirs.
    asked = [sorted(between.split()) for between in " ".join(said).split("push")]
    assert asked == [*[["ahead", "pull"]] * (TICKS - 1), ["pull"], []]
    assert same(plain, overlapped)


@pytest.mark.parametrize("policy", ["asp", "bsp"])
@pytest.mark.parametrize("when", ["now", "ahead", "late"])
def test_after_a_refused_push_the_blocks_that_follow_are_learnt(
    make_server: Callable[..., ParameterServer], when: When, policy: str
) -> None:
    """The refused one is given up, and the one that was prepared on top of it may be."""
    server = make_server(policy=policy)
    with ExitStack() as stack:
        client = greet(server, "n0", stack)
        node = learner(client, "n0")
        refused: list[object] = []
        learnt: list[str] = []

        def told(found: object) -> None:
            if isinstance(found, Tick):
                learnt.append(found.keys[0].split("/")[1])
                return
            refused.append(found)
            welcome = client.hello()
            node.training.restart(welcome.clock, welcome.sequence)

        client.refuse_at = 4
        blocks = iter([block("n0", tick)] for tick in range(TICKS))
        Pipeline(node, blocks, told, when=lambda: when, in_order=True).run()
    assert "3" not in learnt
    assert learnt[:3] == ["0", "1", "2"]
    assert learnt[-7:] == ["5", "6", "7", "8", "9", "10", "11"]
    assert 1 <= len(refused) <= 2
    assert len(learnt) + len(refused) == TICKS


class Nodes:
    """Learners of one server, each in a thread of its own."""

    def __init__(self, server: ParameterServer, names: list[str]) -> None:
        self.server = server
        self.stack = ExitStack()
        self.clients = {name: greet(server, name, self.stack) for name in names}
        self.errors: list[BaseException] = []
        self.done: dict[str, int] = dict.fromkeys(names, 0)
        # All take part from the first clock on.
        for name, client in self.clients.items():
            super(Listening, client).pull(PullRequest({}, clock=0))
            assert name in server.state.machine.board.members

    def run(self, when: When, told: Callable[[str, int], None] = lambda name, tick: None) -> None:
        threads = [
            threading.Thread(target=self._run, args=(name, when, told), daemon=True)
            for name in self.clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads), "a deadlock"
        self.stack.close()
        assert self.errors == []

    def _run(self, name: str, when: When, told: Callable[[str, int], None]) -> None:
        client = self.clients[name]

        def learnt(found: object) -> None:
            if not isinstance(found, Tick):
                raise YeoronError(f"refused: {found}")
            self.done[name] += 1
            told(name, self.done[name])

        try:
            blocks = iter([block(name, tick)] for tick in range(TICKS))
            node = learner(client, name)
            Pipeline(node, blocks, learnt, when=lambda: when, in_order=True).run()
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.errors.append(error)
        finally:
            client.close()


@pytest.mark.parametrize("combine", ["sum", "mean"])
def test_two_nodes_in_bsp_learn_the_same_whether_they_overlap_or_not(
    make_server: Callable[..., ParameterServer], combine: str
) -> None:
    found = []
    for when in ("now", "ahead", "late"):
        server = make_server(policy="bsp", combine=combine)
        Nodes(server, ["n0", "n1"]).run(when)  # type: ignore[arg-type]
        assert server.status()["documents"] == 2 * TICKS * 6
        found.append(tables(server))
    assert same(found[0], found[1])
    assert same(found[0], found[2])


@pytest.mark.parametrize("first", ["asp", "ssp"])
@pytest.mark.parametrize("when", ["ahead", "late"])
def test_a_change_to_bsp_while_training_goes_on_stops_nobody(
    make_server: Callable[..., ParameterServer], first: str, when: When
) -> None:
    server = make_server(policy=first, staleness=2)
    nodes = Nodes(server, ["n0", "n1", "n2"])
    changed: list[str] = []

    def change(name: str, tick: int) -> None:
        if name == "n1" and tick in (3, 8):
            policy = "bsp" if tick == 3 else first
            nodes.clients[name].configure(policy=policy)
            changed.append(policy)

    nodes.run(when, change)
    assert changed == ["bsp", first]
    assert nodes.done == dict.fromkeys(nodes.done, TICKS)
    status = server.status()
    assert status["documents"] == 3 * TICKS * 6
    assert status["pushes"] == 3 * TICKS + 1
    assert np.isfinite(tables(server)[Table.IN]).all()
