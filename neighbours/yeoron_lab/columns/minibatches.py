"""A block as shards that hold columns learn it: indices, a seed and one number an example.

Every shard draws the same examples from the same words and seed (`yeoron_lab/examples.py`), so that
bytes do not depend on the dimension (Ordentlich et al. 2016, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from embedding.exchange.codec import encode_push
from embedding.exchange.headers import positive, whole
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import CodeArray, FloatArray, HalfArray, IntArray
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.traits import COLUMN_MODEL, MODELS

if TYPE_CHECKING:
    from yeoron_lab.examples import Examples

_DRAWS = ("model", "window", "negative", "shrink", "span", "move")
LARGEST_RATE = 1e3


@dataclass(frozen=True)
class Minibatches:
    """One block.

    words      int32 [n], kept tokens in local rows; sentences int32 [m + 1], their offsets
    pool       int32 [p], local rows drawn from the noise distribution
    ids        int64 [rows], id of each local row of `out`; the first `inputs` are rows of `in` too
    draws      settings that the examples depend on
    pairs      examples of a minibatch; rate is the learning rate
    slopes     float32 or float16 [e, 1 + negative], label - σ(score) times the weight of the
               sentence; empty while it is not learnt
    shares     float32 [inputs + rows], the share of its movement that each row of `in`, then of
               `out`, is to make (`worker/learning/combining.py`); empty: all
    """

    words: CodeArray
    sentences: CodeArray
    pool: CodeArray
    ids: IntArray
    inputs: int
    draws: dict[str, Any]
    seed: int
    pairs: int
    rate: float
    slopes: FloatArray | HalfArray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    shares: FloatArray = field(default_factory=lambda: np.empty(0, np.float32))

    @cached_property
    def examples(self) -> Examples:
        """Inputs, outputs and owners of all examples, in order."""
        from yeoron_lab.examples import examples  # compiles: not where nobody trains

        block = LocalBlock(self.words, self.sentences, np.empty(0, np.float32), self.pool)
        return examples(ModelConfig(**self.draws), block, self.seed)

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """Where each minibatch starts and ends."""
        n = len(self.slopes) or len(self.examples.inputs)
        return [(at, min(at + self.pairs, n)) for at in range(0, n, self.pairs)]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        return {
            "batch.words": self.words,
            "batch.sentences": self.sentences,
            "batch.pool": self.pool,
            "batch.ids": self.ids,
            "batch.slopes": self.slopes,
            "batch.shares": self.shares,
        }

    def header(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "draws": self.draws,
            "seed": self.seed,
            "pairs": self.pairs,
            "rate": self.rate,
        }

    def check_learnt(self, most_bytes: int) -> None:
        """RefusedError unless every example of a block that was learnt has its numbers."""
        check_size(self, most_bytes)
        check_slopes(self.slopes, len(self.examples.inputs), self.draws["negative"])
        check_shares(self.shares, self.inputs + len(self.ids))


def draws_of(config: ModelConfig) -> dict[str, Any]:
    """What of a model's settings the examples depend on."""
    return {name: getattr(config, name) for name in _DRAWS}


def encode_block_push(push: Push) -> Message:
    """A push as shards of columns get it: with its block."""
    message, block = encode_push(push), push.minibatches
    if not isinstance(block, Minibatches):
        return message
    header = {**message.header, "batch": block.header()}
    return Message(header, {**message.arrays, **block.arrays()}, message.texts)


def decode_minibatches(message: Message) -> Minibatches | None:
    """The block in a message, checked as far as that goes without state; None: it has none."""
    header = message.header.get("batch")
    if header is None:
        return None
    if not isinstance(header, dict):
        raise RefusedError("message: `batch` must be an object.")
    batch = Minibatches(
        words=message.array("batch.words", "i4", 1),
        sentences=message.array("batch.sentences", "i4", 1),
        pool=message.array("batch.pool", "i4", 1),
        ids=message.array("batch.ids", "i8", 1),
        inputs=whole(header, "inputs", most=2**40, of="batch"),
        draws=_draws(header.get("draws")),
        seed=whole(header, "seed", most=2**63 - 1, of="batch"),
        pairs=whole(header, "pairs", least=1, most=2**31 - 1, of="batch"),
        rate=positive(header.get("rate"), "rate", most=LARGEST_RATE, of="batch"),
        slopes=message.array("batch.slopes", "f4 f2", 2),
        shares=message.array("batch.shares", "f4", 1),
    )
    _check_rows(batch)
    return batch


def check_size(batch: Minibatches, most_bytes: int) -> None:
    """RefusedError when its examples would take more memory than a message may."""
    draws = batch.draws
    bag = MODELS.traits(draws["model"]).bag
    examples = len(batch.words) * (1 if bag else 2 * draws["window"])
    wide = 4 * (1 + draws["negative"] + (2 * draws["window"] if bag else 1))
    if examples * wide > most_bytes:
        raise RefusedError(
            f"batch: up to {examples} examples of {wide} bytes; {most_bytes} bytes are accepted, "
            "so the block has to be smaller.",
            kind="size",
        )


def check_slopes(slopes: FloatArray | HalfArray, examples: int, negative: int) -> None:
    """RefusedError unless there is a finite number for each row of each example."""
    if slopes.shape != (examples, 1 + negative):
        raise RefusedError(
            f"batch: slopes of shape {slopes.shape}; {(examples, 1 + negative)} is accepted.",
            kind="shape",
        )
    if not bool(np.isfinite(slopes).all()) or bool((np.abs(slopes) > LARGEST_RATE).any()):
        raise RefusedError("batch: slopes that are not finite or absurdly large.", kind="values")


def check_shares(shares: FloatArray, rows: int) -> None:
    """RefusedError unless there is a share from 0 to 1 for each row, or none at all."""
    if len(shares) not in (0, rows):
        raise RefusedError(f"batch: {len(shares)} shares; {rows} are accepted.", kind="shape")
    if not bool(((shares >= 0) & (shares <= 1)).all()):
        raise RefusedError("batch: shares must be between 0 and 1.", kind="values")


def _check_rows(batch: Minibatches) -> None:
    n, ends = len(batch.words), batch.sentences
    if batch.inputs > len(batch.ids):
        raise RefusedError(f"batch: {batch.inputs} inputs of {len(batch.ids)} rows.", kind="id")
    if len(np.unique(batch.ids)) != len(batch.ids) or (len(batch.ids) and batch.ids.min() < 0):
        raise RefusedError("batch: an id below 0, or named twice.", kind="id")
    most_rows = (("words", batch.words, batch.inputs), ("pool", batch.pool, len(batch.ids)))
    for name, rows, most in most_rows:
        if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= most):
            raise RefusedError(f"batch: {name} name rows outside 0 … {most - 1}.", kind="id")
    if not len(ends) or ends[0] != 0 or ends[-1] != n or bool((np.diff(ends) < 0).any()):
        raise RefusedError(f"batch: offsets of sentences must rise from 0 to {n}.", kind="shape")


def _draws(given: object) -> dict[str, Any]:
    if not isinstance(given, dict) or set(given) != set(_DRAWS):
        raise RefusedError(f"batch: `draws` must have {', '.join(_DRAWS)}.")
    try:
        config = ModelConfig(**given)
    except ValidationError as error:
        raise RefusedError("batch: `draws` are no settings of a model.") from error
    if not config.traits.minibatches:
        raise RefusedError(f"batch: model {config.model}: {COLUMN_MODEL.reason}.")
    return draws_of(config)
