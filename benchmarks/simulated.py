"""Policies in simulated time: what each learns at equal tokens, whatever the machine's load.

    python -m benchmarks simulated english.txt --words 2400000 --seed 1 --seed 2

Everything that decides what is learnt is real: the server's state, policies, learners, shares,
float16. Left out are the wire, threads and the clock: a queue of events says who reads and pushes
next, and a block takes the seconds that are set for it. So a loss depends on the seed alone, and
tokens/s are those of the policy, with nothing for the wire. Text is handed out, and the nodes are
slow, as in `python -m benchmarks policies`. With --slower 1 each delta of asp
comes n-1 pushes late.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from benchmarks.kept import RESULTS
from benchmarks.local import Line
from benchmarks.policies import HELD_OUT, ONE, PACKAGES, VARIANTS, Cluster, read
from benchmarks.unlike import Dispenser, Text, Wait, held_out_loss
from embedding.exchange.compression.halves import widen
from embedding.exchange.protocol import Ack, PulledRows, PullRequest, Push, Welcome
from embedding.kernel.records import Calendar, Table, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.server import state as server_state
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.service import ParameterServer
from embedding.server.state import ServerState
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup, PushStopwatch
from embedding.worker.learning.ticks import Tick
from yeoron_bench.results import ended, facts, keep_and_print
from yeoron_lab.paced.paced import PacedTraining

NONE = np.empty(0, dtype=np.int64)


class HeldError(Exception):
    """The policy lets a node wait."""


class Clock:
    """Simulated seconds, in place of the `time` module."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    time = monotonic


class SimulatedLine(Line):
    """A line whose rows travel as float16, and on which a node may have to wait."""

    def pull(self, request: PullRequest) -> PulledRows:
        rows = self._state.pull(self._node, request, half=True)
        if isinstance(rows, list):
            raise HeldError(rows)
        return rows

    def push(self, push: Push) -> Ack:
        deltas = tuple(replace(delta, values=widen(delta.values)) for delta in push.deltas)
        return self._state.push(replace(push, deltas=deltas))


class Watch(PushStopwatch):
    """A stopwatch that is told the time."""

    seconds = 0.0

    def busy(self) -> float:
        return self.seconds


class Node:
    """A learner, the block that it prepared, and the one that it trains."""

    def __init__(self, state: ServerState, at: int, wait: Wait, model: ModelConfig) -> None:
        self.at, self.wait, self.share = at, wait, 1.0
        self.line = SimulatedLine(state, f"node-{at}")
        self.watch, welcome = Watch(), self.line.welcome
        self.learner = Learner(
            self.line,
            make_trainer(model),
            None,
            LearnerSetup(
                node=f"node-{at}",
                model=model,
                config=NodeConfig(replay_ratio=0.0).model_copy(
                    update={"vocabulary_blocks": 1000, "score_pairs": 1}
                ),
                calendar=Calendar(WindowUnit.DAY),
            ),
            welcome=Welcome(welcome.clock, min_count=5, pace=welcome.pace),
            stopwatch=self.watch,
            kind=PacedTraining,
        )
        self.line.pull(PullRequest({}, clock=0))
        self.prepared: Tick | None = None
        self.trained: Tick | None = None

    def part(self) -> float:
        """Of the size of a block that the node is to take."""
        return self.share

    def prepare(self, blocks: Any) -> None:
        block: list[TokenBlock] | None = next(blocks, None)
        self.prepared = None if block is None else self.learner.prepare(block, when="late")

    def may_read(self) -> bool:
        try:
            self.line.pull(PullRequest({}, clock=self.learner.turn.clock))
        except HeldError:
            return False
        return True


@dataclass(frozen=True)
class Run:
    """One training; curve: tokens in the tables and held-out loss on the way."""

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
        self.state = ServerState(config, SyncConfig(**sync), RowShape(model.dim, seed=model.seed))
        self.state.words.admit(text.words, text.counts)
        self.state.vocabulary.close(text.words, text.counts)
        # The dispenser looks at nothing but the server's counts.
        self.dispenser = Dispenser(text, cast(ParameterServer, self))
        self.nodes = [Node(self.state, at, wait, model) for at, wait in enumerate(waits)]
        self.blocks = [self.dispenser.blocks(node.at, node.part) for node in self.nodes]
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
            node.learner.training.flush()
        self.state.flush()
        return self._outcome(curve)

    def _go_on(self) -> None:
        """Whoever may read now does, and trains."""
        for node in list(self._waiting):
            if node.prepared is None:
                # It has nothing more to read: nobody waits for it.
                self._waiting.remove(node)
                node.learner.training.flush()
                self.state.idle(f"node-{node.at}")
                self._go_on()
                return
            if not node.may_read():
                continue
            self._waiting.remove(node)
            seconds = node.wait() * sum(b.n_tokens for b in node.prepared.blocks) / self.text.block
            node.trained = node.prepared
            node.learner.training.train(node.trained)
            node.watch.seconds += seconds
            node.prepare(self.blocks[node.at])
            heapq.heappush(self._events, (self.clock.now + seconds, next(self._order), node))

    def _push(self, node: Node) -> None:
        learnt = cast(Tick, node.trained)
        node.learner.training.push(learnt)
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
        patch.object(server_state, "PULL_WAIT_S", 0.0),
        patch("benchmarks.unlike.time", clock),
    ):
        simulation = Simulation(text, model, sync, waits)
        simulation.clock = clock
        return simulation.run(points)


SIMULATED = ("bsp", "ssp-balanced", "backup", "asp", "auto", "easgd", "averaging")
"""Those of `VARIANTS` that need no rounds and no replay."""


def bench_simulated(
    corpus: Path,
    cluster: Cluster = Cluster(),  # noqa: B008 - frozen
    *,
    variants: Sequence[str] = SIMULATED,
    words: int = 2_400_000,
    seeds: Sequence[int] = (1,),
    schedule: LearningRateSchedule = LearningRateSchedule.LINEAR,
    held_out: int = HELD_OUT,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Train with each variant and with one node, for each seed; write a dated file, print it."""
    text = read(corpus, words, cluster.block, held_out)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (ONE, *variants)}
    for seed in seeds:
        model = ModelConfig(sample=0.0, schedule=schedule, seed=seed)
        for variant, own in runs.items():
            alone = variant == ONE
            waits = [lambda: cluster.block_s] if alone else cluster.waits()
            sync = {"policy": "bsp"} if alone else {"balance": False, **VARIANTS[variant]}
            own.append(asdict(simulate(text, model, sync, waits, 5)))
            print(
                f"seed {seed} {variant}: held-out loss {own[-1]['loss']:.4f}, "
                f"{own[-1]['loss'] / runs[ONE][-1]['loss']:.4f} of one node's; "
                f"{own[-1]['tokens_per_second']:,.0f} tokens/s",
                flush=True,
            )
    report = {
        **facts("simulated", PACKAGES),
        "config": {
            **asdict(cluster),
            "seeds": list(seeds),
            "schedule": schedule.value,
            "variants": {name: VARIANTS[name] for name in variants},
        },
        "corpus": {"file": corpus.name, "tokens": text.tokens, "vocabulary": len(text.words)},
        "summary": summary(runs),
        "runs": runs,
    }
    keep_and_print(report, results=results)
    return report


def summary(runs: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, float | None]]:
    """Loss to one node's of the same seed: mean and worst; tokens/s to bsp."""
    ratios_of = {}
    for variant, own in runs.items():
        ratios = [run["loss"] / alone["loss"] for run, alone in zip(own, runs[ONE], strict=True)]
        # Swings show while the learning rate is high; the end of a schedule hides them.
        early = [
            at[1] / one_at[1]
            for run, alone in zip(own, runs[ONE], strict=True)
            for at, one_at in zip(run["curve"], alone["curve"], strict=False)
        ]
        base = runs.get("bsp")
        speed = statistics.fmean(run["tokens_per_second"] for run in own)
        slow = None if base is None else statistics.fmean(r["tokens_per_second"] for r in base)
        ratios_of[variant] = {
            "loss": statistics.fmean(run["loss"] for run in own),
            "to_one_node": statistics.fmean(ratios),
            "worst": max(ratios),
            "worst_early": max(early, default=None),
            "speed_to_bsp": None if slow is None or variant == ONE else speed / slow,
        }
    return ratios_of


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--policy", action="append", choices=SIMULATED)
    parser.add_argument("--words", type=int, default=2_400_000)
    parser.add_argument("--block", type=int, default=5_000)
    parser.add_argument("--slower", type=float, default=10.0)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument(
        "--schedule", type=LearningRateSchedule, default=LearningRateSchedule.LINEAR
    )
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_simulated(
            given.corpus,
            Cluster(nodes=given.nodes, block=given.block, slower=given.slower),
            variants=given.policy or SIMULATED,
            words=given.words,
            seeds=given.seed or (1,),
            schedule=given.schedule,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
