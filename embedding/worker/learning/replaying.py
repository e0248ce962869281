"""What of the past a tick learns along with fresh text, or instead of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from embedding.exchange.pace import Pace
from embedding.exchange.protocol import PulledRows
from embedding.kernel.records import CodeArray, IntArray, TokenBlock
from embedding.kernel.registry import NoTraits, Registry
from embedding.models.base import BlockLoss
from embedding.stream.replay import ReplayMemory
from embedding.worker.config import NodeConfig
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.heldout import HeldOut, HeldPairs
from embedding.worker.learning.mixing import Mixing
from embedding.worker.learning.nodeclock import NodeClock
from embedding.worker.learning.planning import BlockPlan, CodedText
from embedding.worker.learning.rehearsal import Rehearsal, Rehearsed, replay_ratio
from embedding.worker.learning.wordtables import WordTables


class NodeRounds(Protocol):
    """A node's part in rounds of all nodes; used by the thread that pulls."""

    def memory(self) -> ReplayMemory:
        """For a node that replays nothing otherwise."""

    def pulled(self, pull: Callable[[], PulledRows], past: Replaying) -> tuple[PulledRows, float]:
        """What a pull brings after the rounds that it is held back for, and their seconds."""


NODE_ROUNDS: Registry[Callable[..., NodeRounds], NoTraits] = Registry(
    "kind of rounds", "yeoron.rounds"
)
"""Made of the session with the server, model, stream and name of a node, whether its text may
leave it, and the event that ends it. A node takes part in the first; the core has none."""


class Replaying:
    """The replay memory of a learner, the sentences held out of it, and its part in rounds.

    rehearsal  None while nothing is remembered
    held_out   None where nothing is measured by held-out sentences
    rounds     of all nodes; None where the node takes part in none
    learning_rate  of the last block
    """

    def __init__(
        self,
        config: NodeConfig,
        words: WordTables,
        turn: NodeClock,
        learning_rate: float,
        memory: ReplayMemory | None,
        held_out: HeldOut | None,
        rounds: NodeRounds | None,
    ) -> None:
        self.mixing = Mixing(config.source_weights)
        self.learning_rate = learning_rate
        self.rehearsal = None if memory is None else Rehearsal(memory, self.mixing)
        self._config = config
        self._words = words
        self._turn = turn
        self._held_out = held_out
        self._rounds = rounds

    @property
    def pace(self) -> Pace:
        return self._turn.pace

    def fresh(
        self, blocks: Sequence[TokenBlock], parts: list[CodedText], seed: int
    ) -> tuple[list[CodedText], Rehearsed]:
        """Fresh sentences, which are remembered, and sentences of the past to train on too.

        Where there are such rounds the past is learnt in them, not along with what is fresh.
        """
        fresh = parts
        if self._held_out is not None and parts:
            some = partial(self._words.some_noise, seed=seed)
            fresh = self._held_out.take(parts, self._words.keep, some)
        rounds = self._rounds if self.pace.batch_tokens > 0 else None
        if self.rehearsal is None and rounds is not None:
            self.rehearsal = Rehearsal(rounds.memory(), self.mixing)
        if self.rehearsal is None:
            return fresh, Rehearsed(weights=self.mixing.fresh(blocks))
        ratio = 0.0 if rounds is not None else replay_ratio(self._config, self._words.tokens)
        wanted = int(sum(len(part.codes) for part in fresh) * ratio)
        past, held = self.rehearsal.draw(blocks, fresh, wanted)
        return [*fresh, *map(self._words.known, past)], held

    def again(self, order: Order, held: HeldPairs | None) -> tuple[list[CodedText], Rehearsed]:
        """Sentences of the past to learn again, and the words by which the tick is measured."""
        if self.rehearsal is None:
            return [], Rehearsed()
        past, sentences = self.rehearsal.draw_again(order.tokens, evenly=order.evenly)
        parts = [self._words.known(part) for part in past]
        if held is None:
            return parts, sentences
        # A sentence of one word trains nothing; its rows are there.
        ids = held.ids
        parts.append(CodedText.of_ids(ids, np.arange(len(ids) + 1, dtype=np.int32)))
        return parts, sentences.longer(len(ids))

    def portion(self, ids: IntArray, sentences: CodeArray, seed: int) -> BlockPlan:
        """Remembered text, row ids int64 [n], with noise words of its own; any thread."""
        words = self._words
        with words.reading:
            part = words.known(CodedText.of_ids(ids, sentences))
            return words.plan([part], words.noise([part], seed))

    def held_pairs(self) -> HeldPairs | None:
        """The pairs by which a rehearsal is measured."""
        if self._held_out is None:
            return None
        lexicon = self._words.lexicon
        return self._held_out.pairs(lexicon.known, lexicon.ids)

    def decay(self, order: Order | None) -> float:
        """By which part of itself a row of this tick shrinks (weight decay).

        Told when the tick is prepared: by the time it is trained the next may have been read.
        """
        if order is None or self.rehearsal is None:
            return 0.0
        held = max(self.rehearsal.tokens * max(self._turn.active, 1), 1)
        return order.decay * order.rate * min(1.0, order.tokens / held)

    def pulled(self, pull: Callable[[], PulledRows]) -> tuple[PulledRows, float]:
        return (pull(), 0.0) if self._rounds is None else self._rounds.pulled(pull, self)

    def learnt(self, sentences: Rehearsed, loss: BlockLoss) -> None:
        if self.rehearsal is not None:
            self.rehearsal.learnt(sentences, loss)
