"""Messages of a round of L-BFGS: what a node offers, what it is given, what it answers.

A node offers portions of what it remembers, says that it is ready, and then asks for work again and
again, each time with the answer to the last. Rows and gradients are float32 both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from embedding.exchange.wire import Array
from embedding.kernel.fields import Column, RealNumber, WholeNumber
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.base import LocalBlock

_COUNTS = {"least": 0, "most": 1e30}


@dataclass(frozen=True)
class PortionInput:
    """What a portion is computed from: a block as it is trained, and the seed of its draws.

    tokens, sentences, keep, pool, weights  as in `LocalBlock`; no weights: None
    """

    tokens: Annotated[CodeArray, Column("i4", ("tokens",), least=-1)]
    sentences: Annotated[CodeArray, Column("i4", ("ends",), least=0)]
    keep: Annotated[FloatArray, Column("f4", ("words",))]
    pool: Annotated[CodeArray, Column("i4", ("pool",), least=0)]
    weights: Annotated[FloatArray | None, Column("f4", ("w",), -1e30, 1e30, optional=True)]
    seed: Annotated[int, WholeNumber(most=2**63 - 1)]

    @classmethod
    def of(cls, block: LocalBlock, seed: int) -> PortionInput:
        return cls(block.tokens, block.sentences, block.keep, block.pool, block.weights, seed)

    @property
    def block(self) -> LocalBlock:
        return LocalBlock(self.tokens, self.sentences, self.keep, self.pool, weights=self.weights)

    @property
    def arrays(self) -> list[Array]:
        arrays = [self.tokens, self.sentences, self.keep, self.pool, self.weights]
        return [each for each in arrays if each is not None]

    def fits(self, words: int, contexts: int) -> bool:
        """Whether it names only rows that its portion has."""
        ends = self.sentences
        return (
            int(self.tokens.max(initial=-1)) < words
            and int(self.pool.max(initial=-1)) < contexts
            and len(ends) > 0
            and int(ends[0]) == 0
            and int(ends[-1]) == len(self.tokens)
            and bool((np.diff(ends) >= 0).all())
            and len(self.keep) == words
            and (self.weights is None or len(self.weights) == len(ends) - 1)
        )


@dataclass(frozen=True)
class Offer:
    """A portion of what a node remembers.

    words, extras      int64, ids of the rows of `in`, and of those of `out` behind them
    inward, outward    float32 [words], [words + extras], terms of the loss that a row is in
    material           row numbers of its text; None: it stays with the node
    """

    op: ClassVar = "batch"

    number: int
    words: Annotated[IntArray, Column("i8", ("words",))]
    extras: Annotated[IntArray, Column("i8", ("extras",))]
    inward: Annotated[FloatArray, Column("f4", ("words",), **_COUNTS)]
    outward: Annotated[FloatArray, Column("f4", ("contexts",), **_COUNTS)]
    pairs: int
    tokens: int
    material: PortionInput | None

    def fault(self) -> str | None:
        """What no column alone shows to be wrong."""
        contexts = len(self.words) + len(self.extras)
        if len(self.outward) != contexts:
            return "a portion needs a count of terms for each of its rows"
        if self.material is not None and not self.material.fits(len(self.words), contexts):
            return "the text of a portion does not fit its rows"
        return None

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        text = [] if self.material is None else self.material.arrays
        parts: list[Array] = [self.words, self.extras, self.inward, self.outward, *text]
        return sum(each.nbytes for each in parts)


_VECTORS = Column("f4", ("words", "dim"))
_CONTEXTS = Column("f4", ("contexts", "dim"))


@dataclass(frozen=True)
class Task:
    """A portion to compute: loss and gradient at these rows.

    vectors, contexts  float32 [words, dim], [words + extras, dim]
    material           where the portion is another node's
    """

    round: int
    evaluation: int
    node: str
    number: int
    vectors: Annotated[FloatArray, _VECTORS]
    contexts: Annotated[FloatArray, _CONTEXTS]
    material: PortionInput | None


@dataclass(frozen=True)
class Result:
    """Loss (nats, summed) and gradient of a portion, as `Task` gave it."""

    round: int
    evaluation: int
    node: str
    number: int
    loss: Annotated[float, RealNumber(-1e300, 1e300)]
    vectors: Annotated[FloatArray, _VECTORS]
    contexts: Annotated[FloatArray, _CONTEXTS]

    @classmethod
    def of(cls, task: Task, loss: float, vectors: FloatArray, contexts: FloatArray) -> Result:
        return cls(task.round, task.evaluation, task.node, task.number, loss, vectors, contexts)


@dataclass(frozen=True)
class Ready:
    """All portions are offered; `rate`: the node's learning rate of now."""

    op: ClassVar = "batch"

    rate: Annotated[float, RealNumber(0, 1e6, above=0)]


@dataclass(frozen=True)
class Work:
    """A node asks for a portion, with the answer to the last."""

    op: ClassVar = "batch"

    result: Result | None = None
