"""Nodes of unlike speed in simulated time: what a policy learns, whatever the machine's load.

    python -m benchmarks.simulated english.txt --words 4000000 --seeds 3

Everything that decides what is learnt is real: server state, policies, learners, shares, float16.
Left out are the wire, threads and the clock: a queue of events says who reads and pushes next, and
a block takes the seconds that are set for it. So the loss of a run depends on its seed alone, and
tokens/s are those of the policy itself, with nothing for the wire. Text is dealt out as in
`yeoron bench policies`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from benchmarks.unlike import Dispenser, Text, Wait, held_out_loss
from embedding.exchange.compression.halves import widen
from embedding.exchange.protocol import VERSION, Ack, Push, Rows, VocabularyDelta
from embedding.models import ModelConfig, make_trainer
from embedding.records import IntArray, ScorePairs, Table, TokenBlock, WindowUnit
from embedding.server import state as server_state
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer
from embedding.server.state import ServerState
from embedding.worker.config import NodeConfig
from embedding.worker.paced import PacedLearner
from embedding.worker.stopwatch import Stopwatch
from embedding.worker.ticks import Prepared, Trained

NONE = np.empty(0, dtype=np.int64)


class HeldError(Exception):
    """The policy lets a node wait."""


class Clock:
    """Simulated seconds, in place of the `time` module."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


class Line:
    """A node's line to the server, without a wire."""

    def __init__(self, state: ServerState, node: str) -> None:
        self._state, self._node = state, node
        self.welcome = state.hello(node, version=VERSION, digest="", clock=0)

    def admit(self, words: list[str], counts: IntArray) -> IntArray:
        return self._state.admit(words, counts)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        return self._state.delta(since)

    def pull(
        self,
        vectors: IntArray,
        contexts: IntArray,
        *,
        clock: int,
        score: ScorePairs | None = None,
        grams: IntArray | None = None,
    ) -> Rows:
        del score
        rows = self._state.pull(self._node, vectors, contexts, clock, None, grams=grams, half=True)
        if isinstance(rows, list):
            raise HeldError(rows)
        return rows

    def push(self, push: Push) -> Ack:
        deltas = tuple(replace(delta, values=widen(delta.values)) for delta in push.deltas)
        return self._state.push(replace(push, deltas=deltas))


class Watch(Stopwatch):
    """A stopwatch that is told the time."""

    seconds = 0.0

    def busy(self) -> float:
        return self.seconds


class Node:
    """A learner, the block that it prepared, and the one that it trains."""

    def __init__(self, state: ServerState, at: int, wait: Wait, model: ModelConfig) -> None:
        self.at, self.wait, self.share = at, wait, 1.0
        self.line = Line(state, f"node-{at}")
        self.learner = PacedLearner(
            self.line,
            make_trainer(model),
            None,
            node=f"node-{at}",
            model=model,
            config=NodeConfig(replay_ratio=0.0, vocabulary_blocks=1000, score_pairs=1),
            unit=WindowUnit.DAY,
        )
        self.learner.stopwatch = self.watch = Watch()
        self.learner.begin(self.line.welcome.clock, 0, 5)
        self.learner.pace = self.line.welcome.pace
        self.line.pull(NONE, NONE, clock=0)
        self.prepared: Prepared | None = None
        self.trained: Trained | None = None

    def prepare(self, blocks: Any) -> None:
        found: list[TokenBlock] | None = next(blocks, None)
        self.prepared = None if found is None else self.learner.prepare(found, when="late")

    def may_read(self) -> bool:
        try:
            self.line.pull(NONE, NONE, clock=self.learner.clock)
        except HeldError:
            return False
        return True


@dataclass(frozen=True)
class Run:
    """One training in simulated time; curve: tokens in the tables and held-out loss."""

    loss: float
    seconds: float
    tokens_per_second: float
    pushes: int
    dropped_tokens: int
    longest_row: float
    switches: list[str]
    curve: list[tuple[int, float]]


class Simulation:
    """Nodes over one server, event by event."""

    def __init__(
        self, text: Text, model: ModelConfig, sync: dict[str, Any], waits: Sequence[Wait]
    ) -> None:
        self.text, self.model, self.clock = text, model, Clock()
        config = ServerConfig(min_count=5, half_life_tokens=None)
        self.state = ServerState(config, SyncConfig(**sync), dim=model.dim, seed=model.seed)
        self.state.admit(text.words, text.counts)
        self.state.vocabulary.close(text.words, text.counts)
        # The dispenser looks at nothing but the server's counts.
        self.dispenser = Dispenser(text, cast(ParameterServer, self))
        self.nodes = [Node(self.state, at, wait, model) for at, wait in enumerate(waits)]
        self.blocks = [
            self.dispenser.blocks(node.at, lambda node=node: node.share) for node in self.nodes
        ]
        self._events: list[tuple[float, int, Node]] = []
        self._order = itertools.count()
        self._waiting: list[Node] = []

    def run(self, points: int = 0) -> Run:
        """Until the text is learnt. points: losses on the way, evenly spread over the tokens."""
        due = [self.text.tokens * k // points for k in range(1, points)] if points else []
        curve: list[tuple[int, float]] = []
        for node in self.nodes:
            node.prepare(self.blocks[node.at])
        self._waiting = list(self.nodes)
        self._go_on()
        while self._events:
            self.clock.now, _, node = heapq.heappop(self._events)
            self._push(node)
            self._go_on()
            while due and self.state.meters.tokens >= due[0]:
                curve.append((due.pop(0), self.loss()))
        for node in self.nodes:
            node.learner.flush()
        self.state.flush()
        return self._outcome(curve)

    def _go_on(self) -> None:
        """Whoever may read now does, and trains."""
        for node in list(self._waiting):
            if node.prepared is None:
                # It has nothing more to read: nobody waits for it.
                self._waiting.remove(node)
                node.learner.flush()
                self.state.idle(f"node-{node.at}")
                self._go_on()
                return
            if not node.may_read():
                continue
            self._waiting.remove(node)
            seconds = node.wait() * sum(b.n_tokens for b in node.prepared.blocks) / self.text.block
            node.trained = node.learner.train(node.prepared)
            node.watch.seconds += seconds
            node.prepare(self.blocks[node.at])
            heapq.heappush(self._events, (self.clock.now + seconds, next(self._order), node))

    def _push(self, node: Node) -> None:
        if node.trained is None:
            raise AssertionError("an event without a block")
        learnt = node.learner.push(node.trained)
        if learnt.ack is not None:
            node.share, node.watch.seconds = learnt.ack.share, 0.0
        self._waiting.append(node)

    def rows(self) -> list[Any]:
        slots = np.arange(self.state.vocabulary.rows)
        return [self.state.tables.read(table, slots) for table in (Table.IN, Table.OUT)]

    def loss(self) -> float:
        return held_out_loss(self.text, self.model, *self.rows())

    def _outcome(self, curve: list[tuple[int, float]]) -> Run:
        meters, tables = self.state.meters, self.rows()
        applied = meters.tokens - meters.dropped_tokens
        return Run(
            loss=self.loss(),
            seconds=self.clock.now,
            tokens_per_second=applied / self.clock.now if self.clock.now else float("nan"),
            pushes=meters.pushes,
            dropped_tokens=meters.dropped_tokens,
            longest_row=float(max(np.linalg.norm(table, axis=1).max() for table in tables)),
            switches=[f"{s.at:.1f} s: {s.after}; {s.reason}" for s in self.state.machine.switches],
            curve=curve,
        )


def simulate(
    text: Text,
    model: ModelConfig,
    sync: dict[str, Any],
    waits: Sequence[Wait],
    points: int = 0,
) -> Run:
    """Learn the text with a node for each of `waits`."""
    clock = Clock()
    with (
        patch.object(server_state, "time", clock),
        patch.object(server_state, "WAIT_S", 0.0),
        patch("benchmarks.unlike.time", clock),
    ):
        simulation = Simulation(text, model, sync, waits)
        simulation.clock = clock
        return simulation.run(points)
