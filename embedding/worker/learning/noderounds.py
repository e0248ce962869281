"""Rounds in which all nodes do something together between blocks; other packages bring them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from embedding.exchange.pace import Pace
from embedding.exchange.protocol import PulledRows
from embedding.kernel.records import CodeArray, IntArray
from embedding.kernel.registry import NoTraits, Registry
from embedding.stream.replay import ReplayMemory
from embedding.worker.learning.planning import BlockPlan
from embedding.worker.learning.rehearsal import Rehearsal


class Remembers(Protocol):
    """A node's past, as far as a round needs it."""

    @property
    def pace(self) -> Pace:
        """Of the policy."""
        ...

    @property
    def learning_rate(self) -> float:
        """Of the last block."""
        ...

    @property
    def rehearsal(self) -> Rehearsal | None:
        """What it remembers."""
        ...

    def portion(self, ids: IntArray, sentences: CodeArray, seed: int) -> BlockPlan:
        """Remembered text with noise words of its own."""
        ...


class NodeRounds(Protocol):
    """A node's part in rounds of all nodes; used by the thread that pulls."""

    def memory(self) -> ReplayMemory:
        """For a node that replays nothing otherwise."""
        ...

    def pulled(self, pull: Callable[[], PulledRows], past: Remembers) -> tuple[PulledRows, float]:
        """What a pull brings after the rounds that it is held back for, and their seconds."""
        ...


NODE_ROUNDS: Registry[Callable[..., NodeRounds], NoTraits] = Registry(
    "kind of rounds", "yeoron.rounds", "embedding.worker.learning", "NODE_ROUNDS"
)
"""Made of the session with the server, model, stream and name of a node, whether its text may
leave it, and the event that ends it. A node takes part in the first; the core has none."""
