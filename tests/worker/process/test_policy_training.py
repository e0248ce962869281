"""Every policy trains over a real wire: each token once, the loss falls, nothing diverges."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from constants import with_constants
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Welcome
from embedding.kernel.records import Calendar, Table, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.config import StreamConfig
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.learning.ticks import Tick
from embedding.worker.process.pipeline import Pipeline, When
from yeoron_lab.lbfgs.batchwork import BatchWork
from yeoron_lab.paced.paced import PacedTraining

NODES, TICKS, DOCUMENTS, LENGTH = 3, 21, 10, 20
MODEL = ModelConfig(dim=16, window=3, sample=0.0, learning_rate=0.08)
LINE = ExchangeConfig().model_copy(update={"pull_timeout_s": 60.0, "request_timeout_s": 60.0})
TOPICS = [[f"주제{topic}낱말{i}" for i in range(12)] for topic in range(4)]

WAYS: dict[str, dict[str, Any]] = {
    "bsp": {"policy": "bsp"},
    "bsp-mean": {"policy": "bsp", "combine": "mean"},
    "backup": {"policy": "backup", "backups": 1},
    "ssp": {"policy": "ssp", "staleness": 2},
    "asp": {"policy": "asp"},
    "asp-push-4": {"policy": "asp", "n_push": 4},
    "asp-fetch-3": {"policy": "asp", "n_fetch": 3},
    "asp-both": {"policy": "asp", "n_push": 2, "n_fetch": 5},
    "easgd": {"policy": "easgd", "tau": 4},
    "averaging": {"policy": "averaging", "tau": 4},
    "averaging-mean": {"policy": "averaging", "tau": 4, "combine": "mean"},
    "sandblaster": {
        "policy": "sandblaster",
        "lbfgs_every": 5,
        "lbfgs_batch_tokens": 1000,
        "lbfgs_portion_tokens": 200,
        "lbfgs_iterations": 4,
    },
    "auto": {"policy": "auto", "auto_stay_s": 0.0},
}


def block(node: int, tick: int) -> TokenBlock:
    """Documents of one topic each, so that words of a topic come together."""
    rng = np.random.default_rng([node, tick])
    texts = [[list(rng.choice(TOPICS[rng.integers(4)], LENGTH))] for _ in range(DOCUMENTS)]
    keys = [f"{node}/{tick}/{i}" for i in range(DOCUMENTS)]
    return TokenBlock.build(f"s{node}", texts, published=[0.0] * DOCUMENTS, keys=keys)


def server_for(sync: dict[str, Any]) -> Any:
    config = ServerConfig(min_count=1, half_life_tokens=None, config_digest=MODEL.digest())
    return running_server(config, with_constants(SyncConfig, **sync), dim=MODEL.dim, seed=5)


class Nodes:
    """Learners of one server, each in a thread of its own."""

    def __init__(self, server: ParameterServer, when: When = "late") -> None:
        self.server = server
        self.when = when
        self.keys: list[str] = []
        self.losses: dict[int, list[float]] = {node: [] for node in range(NODES)}
        self.errors: list[BaseException] = []
        self.learners: dict[int, Learner] = {}
        self.shares = True
        self.greeted = threading.Barrier(NODES)

    def run(self) -> None:
        threads = [
            threading.Thread(target=self._run, args=(node,), daemon=True) for node in range(NODES)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads), "a deadlock"
        assert self.errors == []

    def ticked(self, node: int, tick: int) -> None:
        """For a test to do something meanwhile."""

    def _run(self, node: int) -> None:
        client = ParameterClient(
            self.server.location, node=f"n{node}", config=LINE, config_digest=MODEL.digest()
        )
        try:
            with ExitStack() as stack:
                stack.callback(client.close)
                self._learn(node, client)
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.errors.append(error)

    def _learn(self, node: int, client: ParameterClient) -> None:
        welcome = client.hello()
        self.greeted.wait(60)  # who greets late has no part in what the others began without it
        learner = Learner(
            client,
            make_trainer(MODEL),
            None,
            LearnerSetup(
                node=f"n{node}",
                model=MODEL,
                config=NodeConfig(replay_ratio=0.0).model_copy(update={"vocabulary_blocks": 2}),
                calendar=Calendar(WindowUnit.DAY),
            ),
            welcome=replace(welcome, active=1),
            rounds=BatchWork(client.peer, MODEL, StreamConfig(), f"n{node}", shares=self.shares),
            kind=PacedTraining,
        )
        self.learners[node] = learner

        def learnt(found: object) -> None:
            assert isinstance(found, Tick), found
            self.keys.extend(found.keys)
            self.losses[node].append(found.loss.mean)
            self.ticked(node, len(self.losses[node]))

        blocks: Iterator[list[TokenBlock]] = ([block(node, tick)] for tick in range(TICKS))
        Pipeline(learner, blocks, learnt, when=lambda: self.when, in_order=False).run()
        self.keys.extend(learner.training.flush())
        assert not learner.training.pending


def check(nodes: Nodes) -> None:
    """All was learnt, once; the loss fell; the rows are of a sane length."""
    status = nodes.server.status()
    blocks = [block(node, tick) for node in range(NODES) for tick in range(TICKS)]
    every = [key for each in blocks for key in each.keys]
    assert sorted(nodes.keys) == sorted(every)
    assert status["tokens"] == NODES * TICKS * DOCUMENTS * LENGTH
    assert status["documents"] == len(every)
    first = np.mean([losses[:3] for losses in nodes.losses.values()])
    last = np.mean([losses[-3:] for losses in nodes.losses.values()])
    assert last < min(0.95 * first, 0.75 * MODEL.untrained_loss)
    state = nodes.server.state
    slots = np.arange(state.vocabulary.rows)
    for table in (Table.IN, Table.OUT):
        lengths = np.linalg.norm(state.tables.read(table, slots), axis=1)
        assert np.isfinite(lengths).all()
        assert lengths.max() < 20


RUNS = [(way, "late") for way in WAYS]
RUNS += [
    (way, "ahead")
    for way in ("bsp", "backup", "ssp", "asp", "asp-both", "easgd", "averaging", "sandblaster")
]
RUNS += [("asp-both", "now"), ("averaging", "now")]


@pytest.mark.parametrize(("way", "when"), RUNS)
def test_three_nodes_learn_everything_once_and_the_loss_falls(way: str, when: When) -> None:
    with server_for(WAYS[way]) as server:
        nodes = Nodes(server, when)
        nodes.run()
        server.state.flush()
        check(nodes)
        assert server.state.meters.dropped_pushes == 0 or way == "backup"


@pytest.mark.parametrize("shares", [True, False])
def test_rounds_of_lbfgs_are_made_by_all_nodes_over_the_wire(shares: bool) -> None:
    meanwhile: list[dict[str, Any]] = []

    class Watched(Nodes):
        def ticked(self, node: int, tick: int) -> None:
            # No node has learnt all yet: a round keeps the nodes together.
            if (node, tick) == (0, TICKS - 3):
                meanwhile.append(self.server.status()["sync"]["rounds"])

    with server_for(WAYS["sandblaster"]) as server:
        nodes = Watched(server)
        nodes.shares = shares
        nodes.run()
        check(nodes)
        found = server.status()["sync"]["rounds"]
        assert found["rounds"] >= TICKS // 5
        assert found["last"] < found["first"]
        assert set(found["by_node"]) == {f"n{node}" for node in range(NODES)}
        assert found["portions"] == sum(found["by_node"].values())
        # Sentences of 20 tokens: portions of 200 make 5 a node, in each evaluation.
        (then,) = meanwhile
        assert then["rounds"] >= (TICKS - 3) // 5
        assert then["lost_portions"] == 0
        assert then["portions"] >= NODES * 5 * then["evaluations"] > 0


def test_pushes_are_as_rare_as_the_policy_says() -> None:
    with server_for({"policy": "asp", "n_push": 4}) as server:
        nodes = Nodes(server)
        nodes.run()
        assert server.status()["pushes"] == NODES * -(-TICKS // 4)


def test_the_policy_is_changed_again_and_again_while_nodes_train() -> None:
    ways = [way for way in WAYS.values() if way["policy"] != "backup"]

    class Changing(Nodes):
        def ticked(self, node: int, tick: int) -> None:
            if node == 1:
                server.state.configure(with_constants(SyncConfig, **ways[tick % len(ways)]))

    with server_for({"policy": "bsp"}) as server:
        nodes = Changing(server)
        nodes.run()
        server.state.flush()
        check(nodes)
        assert server.state.machine.switched >= TICKS // 2


def test_what_a_refused_push_held_is_given_up_and_the_rest_is_learnt() -> None:
    with server_for({"policy": "asp", "n_push": 3}) as server:
        client = ParameterClient(
            server.location, node="n0", config=LINE, config_digest=MODEL.digest()
        )
        with ExitStack() as stack:
            stack.callback(client.close)
            welcome = client.hello()
            learner = Learner(
                client,
                make_trainer(MODEL),
                None,
                LearnerSetup(
                    node="n0",
                    model=MODEL,
                    config=NodeConfig(replay_ratio=0.0),
                    calendar=Calendar(WindowUnit.DAY),
                ),
                welcome=Welcome(pace=welcome.pace),
                kind=PacedTraining,
            )
            assert learner.learn([block(0, 0)]).keys == ()
            assert learner.training.pending
            learner.training.restart(welcome.clock, welcome.sequence)
            assert not learner.training.pending
            found = [learner.learn([block(0, tick)]).keys for tick in (1, 2, 3)]
            assert [len(keys) for keys in found] == [0, 0, 3 * DOCUMENTS]
            assert found[2][0] == "0/1/0"
        assert server.status()["documents"] == 3 * DOCUMENTS
