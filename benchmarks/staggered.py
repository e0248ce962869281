"""Asynchronous nodes in lockstep of their own kind: each delta comes exactly n-1 pushes late.

    python -m benchmarks.staggered english.txt.xz --words 600000 --nodes 2 --nodes 4 --nodes 8

In one process and without a clock: nodes push, pull and train in turn. Of how many nodes should the
shares (ADR 6) be that they push? `pooled` n, as under a barrier, or as `eager.overlapping` has it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import hardware, versions
from benchmarks.policies import PACKAGES, RESULTS, read
from benchmarks.unlike import Text, held_out_loss
from embedding.errors import YeoronError
from embedding.exchange.protocol import VERSION, Ack, Push, Rows, VocabularyDelta
from embedding.models import ModelConfig, make_trainer
from embedding.models.config import Schedule
from embedding.records import IntArray, ScorePairs, Table, TokenBlock, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.policies.eager import overlapping
from embedding.server.state import ServerState
from embedding.worker.config import NodeConfig
from embedding.worker.learner import Learner
from embedding.worker.ticks import Trained

NONE = np.empty(0, dtype=np.int64)


class Line:
    """A node's line to the server; tells it to push shares of `pooled` nodes."""

    def __init__(self, state: ServerState, node: str, pooled: int) -> None:
        self._state, self._node, self._pooled = state, node, pooled
        state.hello(node, version=VERSION, digest="", clock=0)

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
        rows = self._state.pull(self._node, vectors, contexts, clock, None, grams=grams)
        if isinstance(rows, list):
            raise AssertionError("nobody waits under asp")
        return rows

    def push(self, push: Push) -> Ack:
        ack = self._state.push(push)
        return replace(ack, pace=replace(ack.pace, pooled=self._pooled))


def learn(text: Text, model: ModelConfig, nodes: int, pooled: int) -> float:
    """The held-out loss of the text, learnt by so many nodes in turn."""
    config = ServerConfig(min_count=5, half_life_tokens=None)
    state = ServerState(config, SyncConfig(policy="asp"), dim=model.dim, seed=model.seed)
    state.admit(text.words, text.counts)
    state.vocabulary.close(text.words, text.counts)
    learners = [_learner(state, f"n{i}", model, pooled) for i in range(nodes)]
    under_way: list[Trained | None] = [None] * nodes
    for tick, sentences in enumerate(text.blocks):
        learner, before = learners[tick % nodes], under_way[tick % nodes]
        if before is not None:
            learner.push(before)
        block = TokenBlock.build("text", [sentences], published=[0.0], keys=[str(tick)])
        block = replace(block, progress=tick / len(text.blocks))
        under_way[tick % nodes] = learner.train(learner.prepare([block]))
    for learner, last in zip(learners, under_way, strict=True):
        if last is not None:
            learner.push(last)
    slots = np.arange(state.vocabulary.rows)
    rows = [state.tables.read(table, slots) for table in (Table.IN, Table.OUT)]
    return held_out_loss(text, model, *rows)


def _learner(state: ServerState, node: str, model: ModelConfig, pooled: int) -> Learner:
    line = Line(state, node, pooled)
    learner = Learner(
        line,
        make_trainer(model),
        None,
        node=node,
        model=model,
        config=NodeConfig(replay_ratio=0.0, vocabulary_blocks=1000, score_pairs=1),
        unit=WindowUnit.DAY,
    )
    learner.begin(0, 0, 5)
    line.pull(NONE, NONE, clock=0)
    learner.pace = replace(learner.pace, pooled=pooled)
    return learner


def bench_staggered(
    corpus: Path,
    *,
    nodes: Sequence[int] = (2, 4, 8),
    words: int = 600_000,
    block: int = 5_000,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Compare the two for some numbers of nodes; write a dated JSON file and print each run."""
    text = read(corpus, words, block)
    model = ModelConfig(sample=0.0, schedule=Schedule.LINEAR)
    runs = []
    plans = [(1, 1), *((n, pooled) for n in nodes for pooled in sorted({n, overlapping(n)}))]
    for count, pooled in plans:
        loss = learn(text, model, count, pooled)
        runs.append({"nodes": count, "pooled": pooled, "loss": loss})
        print(f"{count} nodes, shares of {pooled}: held-out loss {loss:.4f}", flush=True)
    report = {
        "bench": "staggered",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": versions(PACKAGES),
        "config": {"block": block, "model": model.model_dump(mode="json")},
        "corpus": {"file": corpus.name, "tokens": text.tokens, "vocabulary": len(text.words)},
        "runs": runs,
    }
    results.mkdir(parents=True, exist_ok=True)
    name = f"staggered-{datetime.now(UTC):%Y-%m-%dT%H%M}.json"
    (results / name).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--nodes", type=int, action="append")
    parser.add_argument("--words", type=int, default=600_000)
    parser.add_argument("--block", type=int, default=5_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    try:
        bench_staggered(
            given.corpus,
            nodes=given.nodes or (2, 4, 8),
            words=given.words,
            block=given.block,
            results=given.results,
        )
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
