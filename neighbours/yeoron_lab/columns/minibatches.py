"""A block as shards that hold columns learn it: indices, a seed and one number an example.

Every shard draws the same examples from the same words and seed (`yeoron_lab/examples.py`), so that
bytes do not depend on the dimension (Ordentlich et al. 2016, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import ValidationError

from embedding.exchange.codec import check, record_of, to_message, with_record
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.fields import Column, RealNumber, WholeNumber
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

    words: Annotated[CodeArray, Column("i4", ("words",), least=0)]
    sentences: Annotated[CodeArray, Column("i4", ("ends",))]
    pool: Annotated[CodeArray, Column("i4", ("pool",), least=0)]
    ids: Annotated[IntArray, Column("i8", ("rows",), least=0, distinct=True)]
    inputs: int
    draws: dict[str, Any]
    seed: Annotated[int, WholeNumber(most=2**63 - 1)]
    pairs: Annotated[int, WholeNumber(1, 2**31 - 1)]
    rate: Annotated[float, RealNumber(0, LARGEST_RATE, above=0)]
    slopes: Annotated[FloatArray | HalfArray, Column("f4 f2", ("examples", "outputs"))] = field(
        default_factory=lambda: np.empty((0, 0), np.float32)
    )
    shares: Annotated[FloatArray, Column("f4", ("shares",))] = field(
        default_factory=lambda: np.empty(0, np.float32)
    )

    def fault(self) -> str | None:
        """What no column alone shows to be wrong."""
        n, ends = len(self.words), self.sentences
        if self.inputs > len(self.ids):
            return f"{self.inputs} inputs of {len(self.ids)} rows"
        if int(self.words.max(initial=-1)) >= self.inputs:
            return f"words name rows outside 0 … {self.inputs - 1}"
        if int(self.pool.max(initial=-1)) >= len(self.ids):
            return f"pool name rows outside 0 … {len(self.ids) - 1}"
        if not len(ends) or ends[0] != 0 or ends[-1] != n or bool((np.diff(ends) < 0).any()):
            return f"offsets of sentences must rise from 0 to {n}"
        return None

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
        parts = (self.words, self.sentences, self.pool, self.ids, self.slopes, self.shares)
        return sum(part.nbytes for part in parts)

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
    message, block = to_message(push), push.minibatches
    return with_record(message, "batch", block) if isinstance(block, Minibatches) else message


def decode_minibatches(message: Message) -> Minibatches | None:
    """The block in a message, checked as far as that goes without state; None: it has none."""
    batch = record_of(Minibatches, message, "batch")
    if batch is None:
        return None
    check(batch, "batch")
    return replace(batch, draws=_draws(batch.draws))


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


def _draws(given: dict[str, Any]) -> dict[str, Any]:
    if set(given) != set(_DRAWS):
        raise RefusedError(f"batch: `draws` must have {', '.join(_DRAWS)}.")
    try:
        config = ModelConfig(**given)
    except ValidationError as error:
        raise RefusedError("batch: `draws` are no settings of a model.") from error
    if not config.traits.minibatches:
        raise RefusedError(f"batch: model {config.model}: {COLUMN_MODEL.reason}.")
    return draws_of(config)
