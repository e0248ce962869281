"""How a policy wants nodes to go about their rows; part of the answer to a greeting and a push."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from embedding.kernel.fields import RealNumber, WholeNumber

ROUND = "a round of all nodes"
"""What a pull waits for while a round is on in which nodes do something together."""


@dataclass(frozen=True)
class Pace:
    """When a node pulls and pushes, and what part of its deltas.

    pooled      nodes whose deltas of the same rows are added up (ADR 6): each pushes a share; 0:
                all that take part
    push_every  blocks from one push to the next (n_push, tau)
    pull_every  blocks for which rows that were pulled serve (n_fetch, tau)
    elastic     0: a push is what rows moved by; above 0: β of elastic averaging (Zhang 2015)
    batch_tokens, portion_tokens  what a node gives to a batch of L-BFGS of what it remembers, and
                in what portions; 0: there are no such rounds
    """

    pooled: int = 0
    push_every: Annotated[int, WholeNumber(1)] = 1
    pull_every: Annotated[int, WholeNumber(1)] = 1
    elastic: Annotated[float, RealNumber(0, 1)] = 0.0
    batch_tokens: int = 0
    portion_tokens: int = 0

    @property
    def every_block(self) -> bool:
        """Each block pulls its rows and pushes what they moved by; no copy outlives it."""
        return self.push_every == self.pull_every == 1 and not self.elastic


EVERY_BLOCK = Pace()
"""Every block pulls and pushes."""
