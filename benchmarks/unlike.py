"""Nodes of unlike speed over one server and one text, for the benchmark of the policies.

Everything but the speed is real: server, wire, learners. A block takes a time that is set here,
so that neither the number of cores nor their load says who is slow.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import PullRequest
from embedding.kernel.records import Calendar, FloatArray, IntArray, Table, TokenBlock, WindowUnit
from embedding.models.base import BlockLoss, LocalBlock, Trainer, make_trainer
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.config import StreamConfig
from embedding.stream.replay import make_replay
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.learning.planning import CodedText, plan
from embedding.worker.learning.ticks import Tick
from embedding.worker.process.pipeline import Pipeline
from embedding.worker.words.lexicon import NodeLexicon
from yeoron_lab.lbfgs.batch import Result, Task
from yeoron_lab.lbfgs.batchwork import BatchWork
from yeoron_lab.lbfgs.objective import Objective
from yeoron_lab.paced.paced import PacedTraining

LINE = ExchangeConfig().model_copy(update={"pull_timeout_s": 600.0, "request_timeout_s": 600.0})
Sentences = Sequence[Sequence[str]]
Wait = Callable[[], float]


@dataclass(frozen=True)
class Text:
    """What every run learns, and what it is judged by.

    words   those with a row, most frequent first; counts int64 of the whole text
    blocks  to learn, in order, of about `block` tokens; held_out  sentences that nobody learns
    """

    words: list[str]
    counts: IntArray
    blocks: Sequence[Sentences]
    block: int
    held_out: Sentences

    @property
    def tokens(self) -> int:
        return sum(len(sentence) for block in self.blocks for sentence in block)


class Slowed:
    """A trainer whose every block of `tokens` tokens takes a set time, others in proportion."""

    def __init__(self, trainer: Trainer, wait: Wait, tokens: int) -> None:
        self._trainer = trainer
        self._wait = wait
        self._tokens = tokens

    def train(
        self,
        block: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        until = time.monotonic() + self._wait() * len(block.tokens) / self._tokens
        loss = self._trainer.train(block, vectors, contexts, learning_rate=learning_rate, seed=seed)
        time.sleep(max(0.0, until - time.monotonic()))
        return loss


class SlowedBatch(BatchWork):
    """Portions of a batch take the time of a block of as many tokens."""

    wait: Wait
    tokens: int

    def _compute(self, task: Task, objectives: dict[tuple[str, int], Objective]) -> Result | None:
        began = time.monotonic()
        result = super()._compute(task, objectives)
        objective = objectives.get((task.node, task.number))
        share = 0.0 if objective is None else objective.tokens / self.tokens
        time.sleep(max(0.0, began + self.wait() * share - time.monotonic()))
        return result


def speeds(nodes: int, block_s: float, slower: float, turns: float) -> list[Wait]:
    """How long a block takes at each node: the last one is always slower, or each with a chance.

    turns  0: the last one; above 0: the chance of a block, at any node, to be a slow one
    """

    def wait(node: int) -> Wait:
        dice = random.Random(node)
        if turns:
            return lambda: block_s * (slower if dice.random() < turns else 1.0)
        return lambda: block_s * (slower if node == nodes - 1 else 1.0)

    return [wait(node) for node in range(nodes)]


class Dispenser:
    """Deals a text out to whoever asks, block by block, each once, until all is learnt.

    replay  old tokens that are learnt along with each of the text's

    What a policy drops is made up for with text from the beginning, so that as many tokens reach
    the tables whatever the policy.
    """

    def __init__(self, text: Text, server: ParameterServer, replay: float = 0.0) -> None:
        self._replay = replay
        self._tokens = text.tokens
        self.block = text.block
        self._sentences = itertools.cycle(s for block in text.blocks for s in block)
        self._meters = server.state.meters
        self._lock = threading.Lock()
        self._given = 0
        self.tokens = 0
        self.began: float | None = None
        self.ended: float | None = None
        self.applied = 0

    def blocks(self, node: int, share: Callable[[], float]) -> Iterator[list[TokenBlock]]:
        """share: of the size of a block that this node is to take."""
        while (block := self._next(node, round(self.block * share()))) is not None:
            yield [block]

    def _next(self, node: int, size: int) -> TokenBlock | None:
        with self._lock:
            self.began = self.began or time.monotonic()
            dropped = self._meters.dropped_tokens
            if self.tokens - dropped >= self._tokens:
                if self.ended is None:
                    self.ended = time.monotonic()
                    # Replayed tokens are learnt as well, and no progress in the text.
                    fresh = self._meters.tokens / (1.0 + self._replay)
                    self.applied = round(fresh) - dropped
                return None
            done = (self.tokens - dropped) / self._tokens
            sentences, length = [], 0
            while length < max(size, 1):
                sentences.append(next(self._sentences))
                length += len(sentences[-1])
            self._given += 1
            self.tokens += length
            key = f"{node}/{self._given}"
        block = TokenBlock.build(f"source-{node}", [sentences], published=[0.0], keys=[key])
        return replace(block, progress=done)


@dataclass(frozen=True)
class Outcome:
    """One training. tokens_per_second: until all text was handed out, without dropped tokens."""

    tokens_per_second: float
    seconds: float
    loss: float
    tokens: int
    dropped_tokens: int
    pushes: int
    switches: list[dict[str, Any]]
    longest_row: float
    node_tokens: dict[str, int]
    rounds: dict[str, Any]


def train(text: Text, model: ModelConfig, sync: dict[str, Any], waits: Sequence[Wait]) -> Outcome:
    """Learn the text with a node for each of `waits`.

    sync  settings; `replay`: tokens of the past that are learnt by SGD along with each fresh one
    """
    sync = dict(sync)
    replay = sync.pop("replay", 0.0)
    config = ServerConfig(min_count=5, half_life_tokens=None, cut="manual")
    with running_server(config, SyncConfig(**sync), dim=model.dim, seed=model.seed) as server:
        server.state.words.admit(text.words, text.counts)
        server.state.vocabulary.close(text.words, text.counts)
        dispenser = Dispenser(text, server, replay)
        errors: list[BaseException] = []
        ready = threading.Barrier(len(waits))
        threads = [
            threading.Thread(
                target=_node, args=(node, wait, server, model, dispenser, ready, errors, replay)
            )
            for node, wait in enumerate(waits)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        server.state.flush()
        return _outcome(text, model, server, dispenser)


def _node(
    node: int,
    wait: Wait,
    server: ParameterServer,
    model: ModelConfig,
    dispenser: Dispenser,
    ready: threading.Barrier,
    errors: list[BaseException],
    replay: float,
) -> None:
    try:
        with ExitStack() as stack:
            name = f"node-{node}"
            client = ParameterClient(server.location, node=name, config=LINE)
            stack.callback(client.close)
            welcome = client.hello()
            work = SlowedBatch(client.peer, model, StreamConfig(), name, shares=True)
            work.wait, work.tokens = wait, dispenser.block
            learner = Learner(
                client,
                Slowed(make_trainer(model), wait, dispenser.block),
                make_replay(StreamConfig(), model.seed) if replay else None,
                LearnerSetup(
                    node=name,
                    model=model,
                    config=NodeConfig(replay_ratio=replay).model_copy(
                        update={"vocabulary_blocks": 1000}
                    ),
                    calendar=Calendar(WindowUnit.DAY),
                ),
                welcome=replace(welcome, active=1),
                rounds=work,
                kind=PacedTraining,
            )
            # All take part from the first clock on.
            client.pull(PullRequest({}, clock=welcome.clock))
            ready.wait(60)
            share = [1.0]

            def learnt(outcome: Tick | Exception) -> None:
                if isinstance(outcome, Exception):
                    raise outcome
                if outcome.ack is not None:
                    share[0] = outcome.ack.share

            blocks = dispenser.blocks(node, lambda: share[0])
            Pipeline(learner, blocks, learnt, when=lambda: "late", in_order=False).run()
            learner.training.flush()
    except BaseException as error:  # noqa: BLE001 - told to the caller
        errors.append(error)
        ready.abort()


def _outcome(
    text: Text, model: ModelConfig, server: ParameterServer, dispenser: Dispenser
) -> Outcome:
    state, meters = server.state, server.state.meters
    slots = np.arange(state.vocabulary.rows)
    tables = [state.tables.read(table, slots) for table in (Table.IN, Table.OUT)]
    seconds = (dispenser.ended or time.monotonic()) - (dispenser.began or 0.0)
    status = server.status()
    return Outcome(
        tokens_per_second=dispenser.applied / seconds,
        seconds=seconds,
        loss=held_out_loss(text, model, *tables),
        tokens=meters.tokens,
        dropped_tokens=meters.dropped_tokens,
        pushes=meters.pushes,
        switches=[
            {"s": switch.at - (dispenser.began or 0.0), "to": switch.after, "why": switch.reason}
            for switch in state.machine.switches
        ],
        longest_row=float(max(np.linalg.norm(table, axis=1).max() for table in tables)),
        rounds=status["sync"]["rounds"],
        node_tokens={name: each["tokens"] for name, each in status["nodes"].items()},
    )


class _Rows:
    """Ids are places: the words of a text in their order."""

    def __init__(self, words: int) -> None:
        self.ids: IntArray = np.arange(words, dtype=np.int64)

    def places(self, ids: IntArray) -> IntArray:
        return ids


def held_out_loss(
    text: Text, model: ModelConfig, vectors: FloatArray, contexts: FloatArray
) -> float:
    """Mean loss of a pair (nats) on sentences that nobody learnt, with the same noise each time.

    A training step of length zero: the loss is taken before each update.
    """
    rows = {word: row for row, word in enumerate(text.words)}
    ids = np.array([rows.get(w, -1) for s in text.held_out for w in s], dtype=np.int64)
    ends = np.cumsum([0, *map(len, text.held_out)]).astype(np.int32)
    noise = NoiseTable.build(text.counts, model.noise_exponent)
    pool = noise.draw(max(model.negative, len(ids) // 2), 1).astype(np.int64)
    planned = plan([CodedText.of_ids(ids, ends)], pool, cast(NodeLexicon, _Rows(len(text.words))))
    loss = make_trainer(model).train(
        planned.block,
        vectors[planned.words].copy(),
        contexts[planned.contexts].copy(),
        learning_rate=1e-12,
        seed=1,
    )
    return loss.mean
