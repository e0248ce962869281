"""How a policy wants nodes to go about their rows; part of the answer to a greeting and a push."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from embedding.kernel.errors import RefusedError

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
    push_every: int = 1
    pull_every: int = 1
    elastic: float = 0.0
    batch_tokens: int = 0
    portion_tokens: int = 0

    @property
    def every_block(self) -> bool:
        """Each block pulls its rows and pushes what they moved by; no copy outlives it."""
        return self.push_every == self.pull_every == 1 and not self.elastic

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: object) -> Pace:
        """Inverse of `to_dict`; RefusedError for what is none."""
        if not isinstance(data, Mapping):
            raise RefusedError("message: 'pace' must be an object.")
        values: dict[str, Any] = {each.name: data.get(each.name) for each in fields(cls)}
        elastic = values.pop("elastic")
        least = {"push_every": 1, "pull_every": 1}
        counts = [(n, least.get(name, 0)) for name, n in values.items()]
        if not all(type(n) is int and n >= least for n, least in counts):
            raise RefusedError("message: the counts of 'pace' must be whole and not negative.")
        if type(elastic) not in (int, float) or not (
            math.isfinite(elastic) and 0.0 <= elastic <= 1.0
        ):
            raise RefusedError("message: 'elastic' must lie between 0 and 1.")
        return cls(elastic=float(elastic), **values)


EVERY_BLOCK = Pace()
"""Every block pulls and pushes."""
