"""Rounds of L-BFGS over the wire, with nodes that die, stall, or are told to stop in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.codec import to_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import (
    Pace,
    PullRequest,
)
from embedding.kernel.errors import RefusedError, RoundError, UnavailableError
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.config import StreamConfig
from embedding.stream.replay import UniformReplay
from embedding.worker.learning.planning import CodedText, plan
from embedding.worker.learning.rehearsal import Mixing, Rehearsal
from waiting import until
from yeoron_lab.lbfgs.batch import Result, Task, Work
from yeoron_lab.lbfgs.batchwork import BatchWork
from yeoron_lab.lbfgs.objective import Objective

MODEL = ModelConfig(dim=8, window=2, negative=3)
WORDS = 30
LINE = ExchangeConfig(connect_timeout_s=20.0)
PACE = Pace(batch_tokens=400, portion_tokens=50)
NONE = np.empty(0, dtype=np.int64)


class Ids:
    """Ids are places."""

    ids = np.arange(WORDS)

    def places(self, ids: Any) -> Any:
        return ids


class Memory:
    """A node's memory of sentences, as a learner has it."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        memory = UniformReplay(1000, seed)
        memory.add(rng.integers(0, WORDS, 600), np.arange(0, 601, 10, dtype=np.int32))
        self.rehearsal: Rehearsal | None = Rehearsal(memory, Mixing({}))
        self.pace, self.learning_rate = PACE, 0.05

    def portion(self, ids: Any, sentences: Any, seed: int):
        pool = np.random.default_rng(seed).integers(0, WORDS, 60)
        return plan([CodedText.of_ids(ids, sentences)], pool, Ids())


@contextmanager
def serving(**sync: Any) -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, half_life_tokens=None, device="cpu")
    rounds = SyncConfig(policy="sandblaster", lbfgs_every=1, **sync).model_copy(
        update={"lbfgs_iterations": 3}
    )
    with running_server(config, rounds, dim=MODEL.dim, seed=2) as server:
        server.state.words.admit([f"w{i}" for i in range(WORDS)], np.ones(WORDS, dtype=np.int64))
        yield server


class Node:
    """A client at the clock of a round, and what it does in it."""

    def __init__(self, server: ParameterServer, name: str, kind: type[BatchWork] = BatchWork):
        self.client = ParameterClient(server.location, node=name, config=LINE)
        self.client.hello()
        self.work = kind(self.client.peer, MODEL, StreamConfig(), name, shares=True)
        self.memory = Memory(len(name))
        server.state.machine.board.members[name].clock = 1

    def pull(self) -> None:
        self.client.pull(PullRequest({}, clock=1))


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What each call gave, at the same time; errors as well."""
    found: list[Any] = [None] * len(calls)

    def run(at: int, call: Callable[[], Any]) -> None:
        try:
            found[at] = call()
        except Exception as error:  # noqa: BLE001 - told to the test
            found[at] = error

    threads = [
        threading.Thread(target=run, args=(at, call), daemon=True) for at, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    return found


@contextmanager
def two(server: ParameterServer, kind: type[BatchWork] = BatchWork) -> Iterator[list[Node]]:
    """Both take part: each has pulled once."""
    with ExitStack() as stack:
        nodes = [Node(server, "one"), Node(server, "other", kind)]
        for node in nodes:
            stack.callback(node.client.close)
        for node in nodes:
            server.state.machine.pull(node.client.node, 0, now=time.monotonic())
        yield nodes


@pytest.mark.laboratory
def test_a_pull_waits_for_the_round_and_goes_on_behind_it() -> None:
    with serving() as server, two(server) as nodes:
        with pytest.raises(RoundError, match="a round of all nodes is on"):
            nodes[0].pull()
        pulls = [lambda node=node: node.work.pulled(node.pull, node.memory) for node in nodes]
        assert [type(each) for each in together(*pulls)] == [tuple, tuple]
        found = server.status()["sync"]["rounds"]
        assert (found["rounds"], found["lost_portions"]) == (1, 0)
        assert found["portions"] == 2 * 8 * found["evaluations"]


class Dies(BatchWork):
    """Its stream breaks with its second portion in hand."""

    computed = 0

    def _compute(self, task: Task, kept: dict[tuple[str, int], Objective]) -> Result | None:
        self.computed += 1
        if self.computed == 2:
            raise KeyError("as good as dead")
        return super()._compute(task, kept)


@pytest.mark.parametrize("shares", [True, False])
def test_a_round_goes_on_when_a_nodes_stream_breaks(shares: bool) -> None:
    with serving() as server, two(server, Dies) as nodes:
        one, other = nodes
        one.work.shares = other.work.shares = shares

        def dying() -> None:
            try:
                other.work.take_part(other.memory)
            finally:
                other.client.drop()

        one_did, other_did = together(lambda: one.work.take_part(one.memory), dying)
        assert one_did is None
        assert isinstance(other_did, KeyError)
        found = server.status()["sync"]["rounds"]
        assert found["rounds"] == 1
        assert found["lost_portions"] == (0 if shares else 8)
        assert found["last"] < found["first"]


class Stalls(BatchWork):
    """Holds its first portion until the round is over without it."""

    def _compute(self, task: Task, kept: dict[tuple[str, int], Objective]) -> Result | None:
        found = super()._compute(task, kept)
        if not self.stop.is_set():
            self.stop.wait(30)
            self.stop.clear()
        return found


def test_a_stalled_node_is_not_waited_for_where_others_may_compute_its_portions() -> None:
    with serving() as server, two(server, Stalls) as nodes:
        one, other = nodes

        def quick() -> None:
            one.work.take_part(one.memory)
            other.work.stop.set()

        assert together(quick, lambda: other.work.take_part(other.memory)) == [None, None]
        found = server.status()["sync"]["rounds"]
        assert found["rounds"] == 1
        assert found["copies_won"] >= 1
        assert found["portions"] == 16 * found["evaluations"]
        assert found["by_node"].get("other", 0) <= 1


def test_a_node_that_is_told_to_stop_leaves_the_round() -> None:
    with serving() as server, two(server) as nodes:
        nodes[0].work.stop.set()
        with pytest.raises(UnavailableError, match="told to stop"):
            nodes[0].work.take_part(nodes[0].memory)


def test_another_policy_lets_everybody_go() -> None:
    with serving() as server, two(server) as nodes:

        def change() -> None:
            until(lambda: server.state.parts["rounds"].awaits("one"))
            nodes[1].client.configure(policy="ssp")

        # The other one never comes, so that the round cannot begin.
        found = together(lambda: nodes[0].work.pulled(nodes[0].pull, nodes[0].memory), change)
        assert isinstance(found[0], tuple)
        assert server.status()["sync"]["running"] == "ssp"


def test_what_is_no_message_of_a_round_is_refused_and_the_stream_lives() -> None:
    with serving() as server, two(server) as nodes:
        client = nodes[0].client
        rows = np.full((2, 2), np.nan, dtype=np.float32)
        bad = to_message(Work(Result(1, 1, "one", 0, 1.0, rows, rows)), do="work")
        with pytest.raises(RefusedError, match="not finite"):
            client.peer.request(bad)
        with pytest.raises(RefusedError, match="offer, ready or work"):
            client.peer.request(type(bad)({"op": "batch", "do": "dance"}))
        with pytest.raises(RefusedError, match="rate must be a finite number"):
            client.peer.request(type(bad)({"op": "batch", "do": "ready", "rate": -1}))
        assert client.vocabulary().words
