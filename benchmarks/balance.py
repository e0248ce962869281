"""Four nodes in lockstep, one ten times slower: tokens a second with and without balance.

    python -m benchmarks balance corpus.txt

Server, wire, readers and gradient processes' code are the real ones, as threads of one process;
each node sleeps for every token that it trains on (the last one ten times as long), so that
neither cores nor load say who is slow.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from embedding.kernel.records import FloatArray
from embedding.models.base import BlockLoss, LocalBlock, Trainer, make_trainer
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.config import StreamConfig
from embedding.stream.faults import PeerLost, QueueClosed, QueueFull
from embedding.stream.queue import BlockQueue
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.reading import FeedbackChannel, blocks
from embedding.worker.process.gradient import GradientProcess
from embedding.worker.spec import CorpusShare, NodeSpec
from yeoron_bench.results import facts, keep

NODES = 4
MODEL = ModelConfig(dim=32, sample=0.0, schedule="constant")


class Drowsy:
    """A trainer that sleeps for every token, besides its work."""

    def __init__(self, trainer: Trainer, seconds: float) -> None:
        self._trainer = trainer
        self._seconds = seconds

    def train(
        self,
        block: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        loss = self._trainer.train(block, vectors, contexts, learning_rate=learning_rate, seed=seed)
        time.sleep(self._seconds * len(block.tokens))
        return loss


@dataclass(frozen=True)
class Setting:
    """block_tokens of every node at first; token_s seconds a token; slower: the last one's factor;
    warm_s, then seconds that are measured."""

    policy: str = "bsp"
    block_tokens: int = 4_000
    token_s: float = 2e-5
    slower: float = 10.0
    warm_s: float = 15.0
    seconds: float = 20.0


def _read(queue: BlockQueue, spec: NodeSpec, stop: threading.Event) -> None:
    """What the reader process does."""
    try:
        feedback = FeedbackChannel(queue, spec.node.block_tokens, stop)
        if spec.corpus is None:
            return
        for block in blocks(spec, spec.corpus, feedback.start(), feedback.tokens):
            while not stop.is_set():
                try:
                    queue.put(block, 0.2)
                    break
                except QueueFull:
                    continue
            if stop.is_set():
                return
    except (PeerLost, QueueClosed):
        return
    finally:
        queue.close()


def _learn(queue: BlockQueue, spec: NodeSpec, seconds: float, stop: threading.Event) -> None:
    """What the gradient process does, with a sleep for each token."""
    try:
        trainer = Drowsy(make_trainer(spec.model), seconds)
        GradientProcess(spec, queue, stop, trainer=trainer).run()
    finally:
        queue.close()


def _threads(
    server: ParameterServer, corpus: Path, setting: Setting, stops: list[threading.Event]
) -> list[threading.Thread]:
    threads = []
    for i in range(NODES):
        spec = NodeSpec(
            name=f"n{i}",
            server=server.location,
            corpus=CorpusShare(path=str(corpus), index=i, count=NODES, epochs=100_000),
            text=TextConfig(tokenizer="whitespace", mask=False),
            stream=StreamConfig().model_copy(update={"queue_tokens": 2 * setting.block_tokens}),
            model=MODEL,
            node=NodeConfig(replay_ratio=0.0, block_tokens=setting.block_tokens).model_copy(
                update={"vocabulary_blocks": 100}
            ),
        )
        reader, learner = BlockQueue.pair(spec.stream.queue_tokens)
        slow = setting.token_s * (setting.slower if i == NODES - 1 else 1.0)
        threads += [
            threading.Thread(target=_read, args=(reader, spec, stops[i])),
            threading.Thread(target=_learn, args=(learner, spec, slow, stops[i])),
        ]
    return threads


def run(corpus: Path, setting: Setting, *, balance: bool) -> dict[str, Any]:
    """Tokens a second after the warm-up, of all and of each node, and the shares at the end."""
    config = ServerConfig(min_count=5, config_digest=MODEL.digest(), half_life_tokens=None)
    sync = SyncConfig(policy=setting.policy, balance=balance)
    with running_server(config, sync, dim=MODEL.dim, seed=1) as server:
        stops = [threading.Event() for _ in range(NODES)]
        threads = _threads(server, corpus, setting, stops)
        for thread in threads:
            thread.start()
        while server.status()["pushes"] < NODES:
            time.sleep(0.1)
        time.sleep(setting.warm_s)
        before, began = server.status(), time.monotonic()
        time.sleep(setting.seconds)
        after, took = server.status(), time.monotonic() - began
        for stop in stops:
            stop.set()
        for thread in threads:
            thread.join(60)
    nodes = {
        name: {
            "tokens_per_second": (node["tokens"] - before["nodes"][name]["tokens"]) / took,
            "clocks": node["clock"] - before["nodes"][name]["clock"],
            "block_share": node["block_share"],
        }
        for name, node in after["nodes"].items()
    }
    return {"tokens_per_second": (after["tokens"] - before["tokens"]) / took, "nodes": nodes}


def bench_balance(corpus: Path, setting: Setting, *, results: Path = RESULTS) -> dict[str, Any]:
    """Both, in turn, and a dated result."""
    runs = {name: run(corpus, setting, balance=on) for name, on in (("off", False), ("on", True))}
    report = {
        **facts("balance", ("numpy", "torch", "pyarrow")),
        "setting": vars(setting),
        "runs": runs,
        "gain": runs["on"]["tokens_per_second"] / runs["off"]["tokens_per_second"],
    }
    keep(report, results=results)
    print(json.dumps(report, indent=1))
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--policy", default="bsp")
    parser.add_argument("--seconds", type=float, default=Setting.seconds)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    setting = Setting(policy=given.policy, seconds=given.seconds)
    bench_balance(given.corpus, setting, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
