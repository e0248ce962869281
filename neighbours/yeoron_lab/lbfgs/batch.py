"""Messages of a round of L-BFGS: what a node offers, what it is given, what it answers.

A node offers portions of what it remembers, says that it is ready, and then asks for work again and
again, each time with the answer to the last. Rows and gradients are float32 both ways.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedding.exchange.headers import whole
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.base import LocalBlock

_OPERATION = "batch"


@dataclass(frozen=True)
class PortionInput:
    """What a portion is computed from: a block as it is trained, and the seed of its draws.

    Only the tokens, sentences, keep, pool and weights of the block travel.
    """

    block: LocalBlock
    seed: int

    def arrays(self) -> dict[str, Array]:
        """As parts of a message, but for the seed."""
        block, none = self.block, np.empty(0, dtype=np.float32)
        found = {name: getattr(block, name) for name in ("tokens", "sentences", "keep", "pool")}
        return {**found, "weights": none if block.weights is None else block.weights}

    def check(self, words: int, contexts: int) -> None:
        """RefusedError where it names rows that its portion does not have."""
        block, weights = self.block, self.arrays()["weights"]
        ends = block.sentences
        fit = (
            bool(((block.tokens >= -1) & (block.tokens < words)).all())
            and bool(((block.pool >= 0) & (block.pool < contexts)).all())
            and len(ends) > 0
            and int(ends[0]) == 0
            and int(ends[-1]) == len(block.tokens)
            and bool((np.diff(ends) >= 0).all())
            and len(block.keep) == words
            and len(weights) in (0, len(ends) - 1)
            and bool(np.isfinite(weights).all())
        )
        if not fit:
            raise RefusedError("batch: the text of a portion does not fit its rows.")

    @classmethod
    def read(cls, message: Message) -> PortionInput | None:
        """None when the message has none."""
        if "tokens" not in message.arrays:
            return None
        tokens, ends, pool = (message.array(n, "i4", 1) for n in ("tokens", "sentences", "pool"))
        keep, weights = (message.array(n, "f4", 1) for n in ("keep", "weights"))
        block = LocalBlock(tokens, ends, keep, pool, weights=weights if len(weights) else None)
        return cls(block, whole(message.header, "seed", most=2**63 - 1, of=_OPERATION))


@dataclass(frozen=True)
class Offer:
    """A portion of what a node remembers.

    words, extras      int64, ids of the rows of `in`, and of those of `out` behind them
    inward, outward    float32 [words], [words + extras], terms of the loss that a row is in
    material           row numbers of its text; None: it stays with the node
    """

    number: int
    words: IntArray
    extras: IntArray
    inward: FloatArray
    outward: FloatArray
    pairs: int
    tokens: int
    material: PortionInput | None

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        rows = sum(each.nbytes for each in (self.words, self.extras, self.inward, self.outward))
        text = {} if self.material is None else self.material.arrays()
        return rows + sum(each.nbytes for each in text.values())

    def message(self) -> Message:
        """As it travels."""
        header = {"op": _OPERATION, "do": "offer", "number": self.number}
        header |= {"pairs": self.pairs, "tokens": self.tokens}
        arrays: dict[str, Array] = {"words": self.words, "extras": self.extras}
        arrays |= {"inward": self.inward, "outward": self.outward}
        if self.material is not None:
            header |= {"seed": self.material.seed}
            arrays |= self.material.arrays()
        return Message(header, arrays)

    @classmethod
    def read(cls, message: Message) -> Offer:
        """RefusedError says what is wrong with it."""
        offer = cls(
            number=whole(message.header, "number", of=_OPERATION),
            words=message.array("words", "i8", 1),
            extras=message.array("extras", "i8", 1),
            inward=message.array("inward", "f4", 1),
            outward=message.array("outward", "f4", 1),
            pairs=whole(message.header, "pairs", of=_OPERATION),
            tokens=whole(message.header, "tokens", of=_OPERATION),
            material=PortionInput.read(message),
        )
        contexts = len(offer.words) + len(offer.extras)
        if len(offer.inward) != len(offer.words) or len(offer.outward) != contexts:
            raise RefusedError("batch: a portion needs a count of terms for each of its rows.")
        if offer.material is not None:
            offer.material.check(len(offer.words), contexts)
        for counts in (offer.inward, offer.outward):
            if not (np.isfinite(counts).all() and (counts >= 0).all()):
                raise RefusedError("batch: counts of terms must be finite and not negative.")
        return offer


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
    vectors: FloatArray
    contexts: FloatArray
    material: PortionInput | None

    def message(self) -> Message:
        """As it travels."""
        arrays: dict[str, Array] = {"vectors": self.vectors, "contexts": self.contexts}
        header = {"status": "ok", "do": "compute", **_place(self)}
        if self.material is not None:
            header |= {"seed": self.material.seed}
            arrays |= self.material.arrays()
        return Message(header, arrays)

    @classmethod
    def read(cls, message: Message) -> Task:
        """Inverse of `message`."""
        vectors, contexts = (message.array(n, "f4", 2) for n in ("vectors", "contexts"))
        place = _read_place(message.header)
        return cls(**place, vectors=vectors, contexts=contexts, material=PortionInput.read(message))


@dataclass(frozen=True)
class Result:
    """Loss (nats, summed) and gradient of a portion, as `Task` gave it."""

    round: int
    evaluation: int
    node: str
    number: int
    loss: float
    vectors: FloatArray
    contexts: FloatArray

    @classmethod
    def of(cls, task: Task, loss: float, vectors: FloatArray, contexts: FloatArray) -> Result:
        return cls(task.round, task.evaluation, task.node, task.number, loss, vectors, contexts)


def ready(rate: float) -> Message:
    """All portions are offered; `rate`: the node's learning rate of now."""
    return Message({"op": _OPERATION, "do": "ready", "rate": rate})


def work(result: Result | None) -> Message:
    """Ask for a portion, with the answer to the last."""
    header: dict[str, Any] = {"op": _OPERATION, "do": "work"}
    if result is None:
        return Message(header)
    header |= {**_place(result), "loss": result.loss}
    return Message(header, {"vectors": result.vectors, "contexts": result.contexts})


def read_result(message: Message) -> Result | None:
    """The answer that a question for work brings; None: there is none."""
    if "evaluation" not in message.header:
        return None
    loss = number(message, "loss")
    vectors, contexts = (message.array(n, "f4", 2) for n in ("vectors", "contexts"))
    place = _read_place(message.header)
    return Result(**place, loss=loss, vectors=vectors, contexts=contexts)


def number(message: Message, name: str) -> float:
    """A finite number of the header."""
    found = message.header.get(name)
    if not isinstance(found, int | float) or isinstance(found, bool) or not math.isfinite(found):
        raise RefusedError(f"batch: {name!r} must be a finite number.", kind="values")
    return float(found)


def _place(of: Task | Result) -> dict[str, Any]:
    return {name: getattr(of, name) for name in ("round", "evaluation", "node", "number")}


def _read_place(header: Mapping[str, Any]) -> dict[str, Any]:
    node = header.get("node")
    if not isinstance(node, str):
        raise RefusedError("batch: `node` must name whose portion it is.")
    numbers = {
        name: whole(header, name, of=_OPERATION) for name in ("round", "evaluation", "number")
    }
    return {**numbers, "node": node}
