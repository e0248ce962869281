"""The minimiser, and rounds on a server's own tables: the same step whoever answers first."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from constants import with_constants
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import Table
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Part
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from yeoron_lab.lbfgs.batch import Offer, PortionInput, Result, Task
from yeoron_lab.lbfgs.minimiser import Lbfgs
from yeoron_lab.lbfgs.objective import Objective
from yeoron_lab.lbfgs.rounds import Rounds

MODEL = ModelConfig(dim=6, window=2, negative=3)
WORDS, SIZE, NODES = 20, 4, ("a", "b", "c")


def minimised(f: Callable[[Any], Any], start: Any, **given: Any) -> Lbfgs:
    scale = torch.ones(len(start), 1)
    lbfgs = Lbfgs(start, scale, **{"history": 8, "iterations": 60} | given)
    while lbfgs.trial is not None:
        at = lbfgs.trial.clone().requires_grad_()
        loss = f(at)
        loss.backward()
        lbfgs.evaluated(loss.item(), at.grad)
    return lbfgs


def test_a_quadratic_of_unlike_curvatures_is_solved() -> None:
    curvature = torch.logspace(-1, 1, 12).reshape(6, 2)
    found = minimised(lambda x: (0.5 * curvature * (x - 3.0) ** 2).sum(), torch.zeros(6, 2))
    assert (found.best - 3.0).abs().max() < 1e-2
    assert found.loss < 1e-3
    assert found.evaluations < 90


def test_a_bent_valley_is_followed_and_the_loss_never_rises() -> None:
    def rosenbrock(x: Any) -> Any:
        return ((1 - x[:, 0]) ** 2 + 100 * (x[:, 1] - x[:, 0] ** 2) ** 2).sum()

    losses = [
        minimised(rosenbrock, torch.tensor([[-1.2, 1.0]]), iterations=n).loss for n in range(1, 50)
    ]
    assert all(later <= earlier for earlier, later in pairwise(losses))
    assert losses[-1] < 1e-4


def test_a_place_of_rest_and_a_loss_without_a_bottom_end_it() -> None:
    rest = minimised(lambda x: (x**2).sum(), torch.zeros(2, 2))
    assert (rest.done, rest.why) == (0, "the gradient is nought")
    falls = minimised(lambda x: x.sum(), torch.zeros(2, 2), iterations=3)
    assert falls.why == "no step along the last direction makes the loss smaller"
    assert falls.evaluations < 20


def state_of(**sync: Any) -> ServerState:
    config = ServerConfig(min_count=1, half_life_tokens=None, device="cpu")
    made = ServerState(
        config,
        with_constants(SyncConfig, policy="sandblaster", **sync),
        RowShape(MODEL.dim, seed=3),
    )
    made.words.admit([f"w{i}" for i in range(WORDS)], np.ones(WORDS, dtype=np.int64))
    rng, slots = np.random.default_rng(1), np.arange(WORDS)
    for table in (Table.IN, Table.OUT):
        made.tables.add(table, slots, rng.normal(0, 0.3, (WORDS, MODEL.dim)).astype(np.float32))
    return made


def portion(node: str, number: int) -> tuple[LocalBlock, int]:
    """Every row of the tables is a row of the portion, so that row numbers are ids."""
    rng = np.random.default_rng([ord(node), number])
    block = LocalBlock(
        tokens=rng.integers(0, WORDS, 30).astype(np.int32),
        sentences=np.array([0, 12, 30], dtype=np.int32),
        keep=np.ones(WORDS, dtype=np.float32),
        pool=rng.integers(0, WORDS, 40).astype(np.int32),
    )
    return block, 1000 * ord(node) + number


def offer(node: str, number: int, *, shared: bool) -> Offer:
    block, seed = portion(node, number)
    objective = Objective(MODEL, block, seed)
    return Offer(
        number=number,
        words=np.arange(WORDS),
        extras=np.empty(0, dtype=np.int64),
        inward=objective.touches(WORDS, WORDS)[0],
        outward=objective.touches(WORDS, WORDS)[1],
        pairs=objective.pairs,
        tokens=len(block.tokens),
        material=PortionInput.of(block, seed) if shared else None,
    )


def computed(task: Task) -> Result:
    block, seed = portion(task.node, task.number)
    return Result.of(task, *Objective(MODEL, block, seed).evaluate(task.vectors, task.contexts))


class World:
    """Nodes at the coordinator of one server, asking in an order of its own."""

    def __init__(self, seed: int, *, shared: bool = True, sizes: int = SIZE, **sync: Any) -> None:
        self.state = state_of(**sync)
        self.rounds: Rounds = self.state.parts["rounds"]
        self.sync = self.state.machine.config
        self.dice = random.Random(seed)
        self.active = set(NODES)
        for node in NODES:
            for number in range(sizes):
                self.rounds.offer(node, offer(node, number, shared=shared))
            self.rounds.ready(node, 0.05)

    def run(self, dies: str = "", after: int = 10) -> None:
        held: dict[str, Result | None] = dict.fromkeys(NODES)
        for turn in range(20_000):
            if turn == after:
                self.active.discard(dies)
            node = self.dice.choice(sorted(self.active))
            found = self.rounds.work(node, held.pop(node, None), self.active, self.sync)
            if self.rounds.ended:
                return
            if isinstance(found, Task):
                held[node] = computed(found)
        raise AssertionError("the round has no end")

    def rows(self) -> np.ndarray:
        slots = np.arange(WORDS)
        return np.concatenate([self.state.tables.read(t, slots) for t in (Table.IN, Table.OUT)])


def alone(**sync: Any) -> tuple[np.ndarray, Rounds]:
    """What the round comes to when every portion is computed in order."""
    world = World(0, **sync)
    world.run()
    return world.rows(), world.rounds


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("copies", [0, 2])
def test_the_step_is_the_same_in_whatever_order_answers_come(seed: int, copies: int) -> None:
    before, (wanted, rounds) = state_of(), alone()
    world = World(seed, lbfgs_copies=copies)
    world.run()
    assert np.abs(world.rows() - wanted).max() < 1e-4
    figures = world.rounds.done
    assert figures.portions == len(NODES) * SIZE * figures.evaluations
    assert figures.last < figures.first
    assert rounds.done.rows == 2 * WORDS
    assert np.abs(wanted[:WORDS] - before.tables.read(Table.IN, np.arange(WORDS))).max() > 1e-3


def test_a_dead_nodes_portions_are_computed_by_the_others_where_its_text_may_be_read() -> None:
    wanted, _ = alone()
    world = World(4)
    world.run(dies="b")
    assert np.abs(world.rows() - wanted).max() < 1e-4
    assert world.rounds.done.lost_portions == 0


def test_text_that_does_not_leave_its_node_goes_with_it_and_the_round_ends_without() -> None:
    world = World(4, shared=False)
    world.run(dies="b")
    assert world.rounds.done.lost_portions == SIZE
    assert world.rounds.done.last < world.rounds.done.first
    assert np.isfinite(world.rows()).all()


def test_a_round_begins_when_every_active_node_is_ready_and_not_before() -> None:
    world = World(1)
    world.active.add("late")
    assert world.rounds.work("a", None, world.active, world.sync) is True
    assert world.rounds.work("late", None, world.active, world.sync) is False
    world.rounds.ready("late", 0.05)
    assert isinstance(world.rounds.work("late", None, world.active, world.sync), Task)


def test_another_policy_ends_a_round_and_keeps_what_it_gained() -> None:
    world = World(2)
    before = world.rows()
    held: Result | None = None
    for _ in range(60):
        found = world.rounds.work("a", held, world.active, world.sync)
        held = computed(found) if isinstance(found, Task) else None
    world.state.configure(SyncConfig(policy="ssp"))
    figures = world.rounds.done
    assert (figures.rounds, figures.why) == (1, "another policy began")
    assert figures.iterations > 0
    assert np.abs(world.rows() - before).max() > 1e-3
    assert world.rounds.work("a", held, world.active, world.sync) is False


def test_a_policy_that_is_refused_ends_no_round() -> None:
    class Objecting(Part):
        def check_policy(self, sync: SyncConfig, before: SyncConfig) -> None:
            raise RefusedError("not now")

    world = World(2)
    assert isinstance(world.rounds.work("a", None, world.active, world.sync), Task)
    with pytest.raises(RefusedError, match="from sandblaster to hogwild"):
        world.state.configure(SyncConfig(policy="hogwild"))
    assert world.rounds.done.rounds == 0
    world.state.parts["last"] = Objecting()
    with pytest.raises(RefusedError, match="not now"):
        world.state.configure(SyncConfig(policy="ssp"))
    assert world.state.machine.config.policy == "sandblaster"
    assert world.rounds.done.rounds == 0
    assert isinstance(world.rounds.work("b", None, world.active, world.sync), Task)


def test_nodes_that_remember_nothing_are_let_go() -> None:
    world = World(1, sizes=0)
    world.run()
    assert world.rounds.done.why == "no node remembers a pair"


def test_what_is_not_limited_by_the_term_goes_farther() -> None:
    near, far = alone(lbfgs_reach=0.5)[0], alone(lbfgs_reach=50.0)[0]
    start = World(0).rows()
    assert np.linalg.norm(near - start) < 0.7 * np.linalg.norm(far - start)


def test_a_gradient_of_another_shape_is_refused_and_nothing_changes() -> None:
    world = World(1)
    task = world.rounds.work("a", None, world.active, world.sync)
    assert isinstance(task, Task)
    good = computed(task)
    bad = Result.of(task, good.loss, good.vectors[:3], good.contexts)
    with pytest.raises(RefusedError, match="gradient"):
        world.rounds.work("a", bad, world.active, world.sync)
    assert world.rounds.done.portions == 0


@pytest.mark.parametrize(
    ("config", "more", "what"),
    [
        ({"optimizer": "adagrad"}, {}, "adagrad"),
        ({}, {"buckets": 50}, "rows of n-grams"),
        ({}, {"biases": 1}, "biases in rows"),
    ],
)
def test_servers_that_cannot_are_told_so_at_the_start_and_while_they_run(
    config: dict[str, Any], more: dict[str, int], what: str
) -> None:
    given = ServerConfig(device="cpu", **config)
    with pytest.raises(ConfigError, match=what):
        ServerState(given, SyncConfig(policy="sandblaster"), RowShape(4, seed=1, **more))
    state = ServerState(given, SyncConfig(), RowShape(4, seed=1, **more))
    with pytest.raises(ConfigError, match=what):
        state.configure(SyncConfig(policy="sandblaster"))
    assert state.machine.policy.name == "ssp"
