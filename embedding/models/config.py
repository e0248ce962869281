"""Settings of the model and of its training."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, model_validator

from embedding.kernel.config import Config
from embedding.models.traits import ModelTraits, check_model, traits_of


class LearningRateSchedule(StrEnum):
    """How the learning rate moves: with the share of the training that is done, not at all, or with
    the share of its window that has passed: of its text in a corpus, of its time in a stream."""

    LINEAR = "linear"
    CONSTANT = "constant"
    WINDOW = "window"


class Optimiser(StrEnum):
    """The update rule on the node."""

    SGD = "sgd"
    ADAGRAD = "adagrad"


Unit = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]


class ModelConfig(Config):
    """The model, its hyper-parameters, and the optimiser that runs on a node."""

    INTERNAL: ClassVar = frozenset(("span", "move", "noise_own", "shrink"))

    model: Annotated[str, AfterValidator(check_model)] = "sgns"
    """sgns, cbow, fasttext, glove or sppmi, or one that another package adds
    (docs/extending.md)."""

    dim: int = Field(default=100, ge=1, le=65536)
    """Dimension of the word vectors."""

    window: int = Field(default=5, ge=1, le=1000)
    """Words on each side of the centre that count as its context."""

    negative: int = Field(default=5, ge=1, le=1000)
    """Noise words per positive pair."""

    sample: float = Field(default=1e-4, ge=0, le=1)
    """Subsampling threshold of word2vec: words more frequent are dropped at random; 0: never."""

    learning_rate: Positive = 0.025
    """Learning rate at the start of the training."""

    schedule: LearningRateSchedule = LearningRateSchedule.CONSTANT
    """linear for a corpus with an end, constant for a stream, window for a dated corpus: the rate
    falls in each window again (see docs/concepts/training.md)."""

    optimiser: Optimiser = Optimiser.SGD
    """sgd, or adagrad: row-wise AdaGrad (one accumulator a row)."""

    shrink: bool = True
    """Draw each centre's window uniformly from 1 to `window`, as word2vec does."""

    noise_own: int = Field(default=1, ge=1, le=1000)
    """Factor on the number of noise words of a pair. No more rows travel: each drawn word that
    the block does not hold is used this many times."""

    span: int = Field(default=64, ge=1, le=1 << 28)
    """Length of the stretch of the pool that a pair draws its noise words from."""

    move: int = Field(default=3, ge=1, le=1 << 28)
    """Noise words by which the stretch moves on with every centre word."""

    buckets: int = Field(default=200_000, ge=1, le=1 << 31)
    """Hash buckets for the n-grams of fastText."""

    seed: int = Field(default=1, ge=0, lt=1 << 63)
    """Seed of initial vectors, windows, subsampling and noise."""

    # Constants: a file that sets one is refused.
    # Noise words are drawn in proportion to count ** noise_exponent.
    noise_exponent: ClassVar = 0.75
    min_learning_rate: ClassVar = 1e-4  # Learning rate at the end of a linear schedule.
    # window: by which part of itself the learning rate is higher when a window begins, and lower
    # when it ends; its mean over the window is `learning_rate`.
    window_swing: ClassVar = 0.5
    # Noise rows drawn for each token of a block, from which its pairs take theirs: bounds what a
    # block pulls and pushes beside its own words.
    noise_share: ClassVar = 0.5
    glove_alpha: ClassVar = 0.75  # Exponent of GloVe's weighting function.
    # Co-occurrence count x_max above which GloVe weighs all cells alike.
    glove_ceiling: ClassVar = 100.0
    # Bound on the cells of a streaming co-occurrence table (16 bytes each).
    cells: ClassVar = 4_000_000
    # k of the shifted positive PMI (SPPMI): PMI - log k is kept where positive.
    shift: ClassVar = 1.0

    @model_validator(mode="after")
    def _consistent(self) -> ModelConfig:
        falls = self.schedule is LearningRateSchedule.LINEAR
        if falls and self.min_learning_rate > self.learning_rate:
            raise ValueError(
                f"learning_rate {self.learning_rate:g}: a linear schedule ends at "
                f"{self.min_learning_rate:g}, and must fall, not rise"
            )
        return self

    @property
    def traits(self) -> ModelTraits:
        return traits_of(self.model)

    @property
    def width(self) -> int:
        """Columns of a table: those of a vector, and what else the model keeps in a row."""
        return self.dim + self.traits.extra_columns

    @property
    def biases(self) -> int:
        """Columns at the end of a table that are no part of a vector."""
        return self.width - self.dim

    @property
    def gram_rows(self) -> int:
        """Rows of the table of n-grams; 0 where the model has none."""
        return self.buckets if self.traits.has_subwords else 0

    @property
    def untrained_loss(self) -> float:
        """Loss of a pair (nats), or at most that of a cell of GloVe, before anything is learnt.

        A cell's is half the squared logarithm of its count, here of 2³¹ occurrences.
        """
        if not self.traits.draws_noise:
            return 0.5 * math.log(2.0**31) ** 2
        return (1 + self.negative) * math.log(2.0)

    def rate(self, progress: float) -> float:
        """Learning rate when `progress` (0 to 1) of the training, or of its window, is done."""
        if self.schedule is LearningRateSchedule.CONSTANT:
            return self.learning_rate
        done = min(max(progress, 0.0), 1.0)
        if self.schedule is LearningRateSchedule.WINDOW:
            return self.learning_rate * (1.0 + self.window_swing * (1.0 - 2.0 * done))
        return max(self.min_learning_rate, self.learning_rate * (1.0 - done))
