"""What the worker hands to a model and what it gets back.

A model never sees ids, the network or a server: it trains on local copies of rows, in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import CodeArray, FloatArray, IntArray

if TYPE_CHECKING:
    from embedding.models.sampling import NoiseTable
from embedding.models.config import ModelConfig
from embedding.models.traits import COUNT_MODELS, MODELS


class Track(StrEnum):
    """Which figures of each sentence `Trainer.train` hands back beside the block's loss."""

    NONE = "none"
    LOSS = "loss"
    GRADIENT = "gradient"


@dataclass(frozen=True)
class LocalBlock:
    """One block of tokens in local rows, ready to train on.

    tokens     int32 [n], row of the word in `vectors` and in `contexts`; -1: not in the vocabulary
    sentences  int32 [m + 1], token offsets of sentences, from 0 to n
    keep       float32 [U], probability to keep a word (subsampling); empty keeps every word
    pool       int32 [p], rows of `contexts` drawn from the noise distribution, with repetition
    ids        int64 [>= U], stable ids of the rows of `contexts` (of which the first U are those
               of the words in `vectors` too); None: state kept between blocks (AdaGrad, GloVe's
               counts) is not carried over
    subwords   int32, rows of `vectors` that hold n-grams, word after word (fastText only)
    subword_offsets  int32 [U + 1], where the n-grams of each word start in `subwords`
    subword_ids      int64 [rows of vectors - U], stable ids of the n-gram rows, None like `ids`
    weights     float32 [m], factor of the learning rate of each sentence (importance weights),
                above 0; None: 1 for all
    track       which figures of each sentence are measured: loss costs next to nothing, gradient
                (with the loss) a copy of the sentence's rows
    noise       what `pool` was drawn from, and the rows of `contexts`, int64 [p], of its places:
                for a trainer that draws noise itself; None: the pool alone
    """

    tokens: CodeArray
    sentences: CodeArray
    keep: FloatArray
    pool: CodeArray
    ids: IntArray | None = None
    subwords: CodeArray | None = None
    subword_offsets: CodeArray | None = None
    subword_ids: IntArray | None = None
    weights: FloatArray | None = None
    track: Track = Track.NONE
    noise: tuple[NoiseTable, IntArray] | None = None

    def check(self, vectors: DeviceArray, contexts: DeviceArray) -> None:
        """Refuse a block whose rows do not lie in the tables (InputError), before any update."""
        for name, table in (("vectors", vectors), ("contexts", contexts)):
            if not isinstance(table, np.ndarray):
                continue  # the server's own, on a GPU
            if table.dtype != "float32" or table.ndim != 2 or not table.flags.c_contiguous:
                raise InputError(
                    f"{name}: dtype {table.dtype}, {table.ndim} axes; a C-contiguous float32 "
                    "[rows, dim] array is accepted, as the kernel updates it in place."
                )
        if vectors.shape[1] != contexts.shape[1]:
            raise InputError(
                f"vectors have {vectors.shape[1]} columns and contexts {contexts.shape[1]}: "
                "both tables need the same dimension."
            )
        _inside("tokens", self.tokens, -1, min(len(vectors), len(contexts)))
        _inside("pool", self.pool, 0, len(contexts))
        if len(self.keep) and len(self.tokens) and int(self.tokens.max()) >= len(self.keep):
            raise InputError(
                f"keep has {len(self.keep)} rows but a token names row {int(self.tokens.max())}: "
                "every word of the block needs a probability to be kept."
            )
        ends, weights = self.sentences, self.weights
        ordered = len(ends) > 0 and bool((ends[1:] >= ends[:-1]).all())
        if not ordered or int(ends[0]) != 0 or int(ends[-1]) != len(self.tokens):
            raise InputError(
                f"sentence offsets of a block of {len(self.tokens)} tokens must rise from 0 to "
                f"{len(self.tokens)}."
            )
        if weights is None:
            return
        if weights.dtype != "float32" or weights.shape != (len(self.sentences) - 1,):
            raise InputError(
                f"weights: {weights.dtype} {weights.shape}; float32 "
                f"[{len(self.sentences) - 1}] is accepted, one a sentence."
            )
        if not bool(((weights > 0) & (weights < float("inf"))).all()):
            raise InputError(
                "weights must be finite and above 0: leave out a sentence that is not to be learnt."
            )


def _inside(name: str, rows: CodeArray, low: int, high: int) -> None:
    if len(rows) and (int(rows.min()) < low or int(rows.max()) >= high):
        raise InputError(
            f"{name}: rows {int(rows.min())} to {int(rows.max())} are named; "
            f"{low} to {high - 1} exist in the tables of this block."
        )


@dataclass(frozen=True)
class BlockLoss:
    """Loss of one block, summed over its pairs, measured just before each pair's update.

    loss_sum  nats; -log σ(positive) - Σ log σ(-negative) for negative sampling
    pairs     positive pairs (skip-gram) or predicted words (CBOW) or cells (GloVe)
    words     tokens that were trained on, after subsampling and unknown words

    When the block asked for them (`LocalBlock.track`), of its m sentences, else None:
    sentence_loss      float32 [m], mean loss of a pair in nats, without the weight; 0: no pair
    sentence_pairs     int32 [m], pairs (of what `pairs` counts) that were trained
    sentence_gradient  float32 [m], how far the sentence moved the rows, as one vector, divided by
                       its learning rate: with SGD, up to terms of the order of the rate, the norm
                       of the gradient of its summed loss (‖g‖ of Alain et al. 2015; in CBOW and
                       fastText of the step, which each row of a bag gets whole); with AdaGrad the
                       norm of the adapted step, over the rate
    """

    loss_sum: float
    pairs: int
    words: int = 0
    sentence_loss: FloatArray | None = field(default=None, compare=False)
    sentence_pairs: CodeArray | None = field(default=None, compare=False)
    sentence_gradient: FloatArray | None = field(default=None, compare=False)

    @property
    def mean(self) -> float:
        return self.loss_sum / self.pairs if self.pairs else 0.0


@runtime_checkable
class Trainer(Protocol):
    """A model's update rule: one contract suite runs over every implementation."""

    def train(
        self,
        block: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        """Train on `block`, updating `vectors` and `contexts` in place.

        vectors, contexts  float32 [rows, width], C-contiguous (`ModelConfig.width` columns)
        The same arguments and the same state give the same bytes, except on a GPU. Several threads
        may call it on the same tables at once (Hogwild): the kernel holds no lock and no GIL.
        Raises InputError when the block names rows that are not there.
        """


def make_trainer(config: ModelConfig) -> Trainer:
    """The trainer that `config.model` names; its kernel is imported (not compiled) here.

    Raises ConfigError for a model that is counted.
    """
    if config.model in COUNT_MODELS:
        raise ConfigError(
            f"{config.model} is counted, not trained block by block: no trainer learns it."
        )
    return MODELS.get(config.model)(config)
