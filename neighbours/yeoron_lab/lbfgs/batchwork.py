"""A node in a round of L-BFGS: what it gives to the batch, and the portions that it computes.

The text of a portion stays with its node, unless `shares` says that every node may read it anyway:
then its row numbers travel, and any node can compute it (docs/adr/0012-rounds-of-lbfgs.md).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.peer import Peer
from embedding.exchange.protocol import PulledRows
from embedding.kernel.errors import RoundError, UnavailableError
from embedding.kernel.registry import NoTraits
from embedding.models.config import ModelConfig
from embedding.stream.config import StreamConfig
from embedding.stream.replay import ReplayMemory, make_replay
from embedding.worker.learning.planning import BlockPlan
from embedding.worker.learning.rehearsal import NODE_ROUNDS, Replaying
from embedding.worker.learning.ticks import hash_seed
from yeoron_lab.lbfgs.batch import Offer, PortionInput, Ready, Result, Task, Work
from yeoron_lab.lbfgs.objective import Objective


@NODE_ROUNDS.register("lbfgs", NoTraits())
@dataclass
class BatchWork:
    """Takes part in rounds for one node; used by the thread that pulls.

    line    where messages go
    stream  how a node remembers that replays nothing otherwise
    shares  the text may leave the node as row numbers
    stop    set when the node is to end
    """

    line: Peer
    model: ModelConfig
    stream: StreamConfig
    node: str
    shares: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    _rounds: int = 0

    def memory(self) -> ReplayMemory:
        return make_replay(self.stream, self.model.seed)

    def pulled(self, pull: Callable[[], PulledRows], past: Replaying) -> tuple[PulledRows, float]:
        """What a pull brings after the rounds that it is held back for, and their seconds."""
        began = last = time.monotonic()
        while True:
            try:
                return pull(), last - began
            except RoundError:
                self.take_part(past)
                last = time.monotonic()

    def take_part(self, past: Replaying) -> None:
        """Until the round is over; UnavailableError when told to stop meanwhile."""
        objectives: dict[tuple[str, int], Objective] = {}
        if self.model.traits.minibatches:
            for number, (plan, seed) in enumerate(self._recall(past)):
                objectives[self.node, number] = self._offer(number, plan, seed)
        self.line.request(to_message(Ready(past.learning_rate), do="ready"))
        result: Result | None = None
        while not self.stop.is_set():
            answer = self.line.request(to_message(Work(result), do="work"))
            what = answer.header.get("do")
            if what == "read":
                return
            result = None
            if what == "compute":
                result = self._compute(from_message(Task, answer), objectives)
        raise UnavailableError(f"{self.node}: told to stop in a round of L-BFGS.")

    def _recall(self, past: Replaying) -> Iterator[tuple[BlockPlan, int]]:
        """What the node gives to a batch, portion by portion, each with a seed."""
        if past.rehearsal is None:
            return
        pace = past.pace
        sample = past.rehearsal.recall(pace.batch_tokens)
        self._rounds += 1
        start, ends = 0, sample.sentences
        while start < len(ends) - 1:
            wanted = ends[start] + max(1, pace.portion_tokens)
            end = max(start + 1, int(np.searchsorted(ends, wanted, side="right")) - 1)
            seed = hash_seed(self.model.seed, self.node, (self._rounds << 32) + start)
            ids = sample.tokens[ends[start] : ends[end]]
            plan = past.portion(ids, ends[start : end + 1] - ends[start], seed)
            weights = sample.weights[start:end].astype(np.float32)
            if not (weights == 1.0).all():
                plan = replace(plan, block=replace(plan.block, weights=weights))
            yield plan, seed
            start = end

    def _offer(self, number: int, plan: BlockPlan, seed: int) -> Objective:
        objective = Objective(self.model, plan.block, seed)
        inward, outward = objective.touches(len(plan.words), len(plan.contexts))
        offer = Offer(
            number=number,
            words=plan.words,
            extras=plan.extras,
            inward=inward,
            outward=outward,
            pairs=objective.pairs,
            tokens=objective.tokens,
            material=PortionInput.of(plan.block, seed) if self.shares else None,
        )
        self.line.request(to_message(offer, do="offer"))
        return objective

    def _compute(self, task: Task, objectives: dict[tuple[str, int], Objective]) -> Result | None:
        """None for a portion that this process does not have: one before it had offered it."""
        name = task.node, task.number
        objective = objectives.get(name)
        if objective is None and task.material is not None:
            objective = objectives[name] = Objective(
                self.model, task.material.block, task.material.seed
            )
        if objective is None:
            return None
        return Result.of(task, *objective.evaluate(task.vectors, task.contexts))
