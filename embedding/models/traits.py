"""What models declare of themselves, and the registries of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from embedding.kernel.registry import Need, Registry

if TYPE_CHECKING:
    from embedding.models.base import Trainer
    from embedding.models.config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class ModelTraits:
    """What a model does. What needs a trait refuses a model that does not declare it."""

    draws_noise: bool = False
    """Negative sampling: a block brings a pool of noise words, and its loss is that of
    1 + negative decisions a pair."""

    weighs_sentences: bool = False
    """It takes `LocalBlock.weights` and measures sentences (`LocalBlock.track`): ranked replay,
    source weights, learning rates that follow a window, rehearsal."""

    minibatches: bool = False
    """Its examples are those of `examples.py`, each learnt by one number a row, and its loss is
    that of a fixed block: columns on shards, and rounds of L-BFGS."""

    bag: bool = False
    """The input of an example is a bag of up to 2·window words."""

    has_subwords: bool = False
    """A word also has rows of n-grams."""

    extra_columns: int = 0
    """Columns of a row that are no part of its vector."""

    keeps_state: bool = False
    """A trainer remembers rows by their ids from one block to the next (`LocalBlock.ids`)."""

    usage: bool = False
    """A word's own row says how it is used: what moved is judged by documents."""

    rare_words: bool = False
    """A vector can be inferred from all contexts of a word at once (`inference.py`)."""

    gpu: bool = False
    """There is a kernel of it for GPUs (`gpu.py`): skip-gram, or with `bag` CBOW."""

    def contradiction(self) -> str:
        if self.minibatches and (self.has_subwords or self.extra_columns or not self.draws_noise):
            return (
                "minibatches goes with draws_noise, and without has_subwords and extra_columns: "
                "an example's rows are those of words alone"
            )
        if self.bag and not self.draws_noise:
            return "bag goes with draws_noise only: it says how many rows a noise word meets"
        return ""


class CountedModel(Protocol):
    """Types of rooms above are named in words."""

    @staticmethod
    def check_request(request: Any) -> None:
        """ConfigError for what of a `TrainRequest` does not go with it."""

    @staticmethod
    def count(request: Any, store: Path, progress: Any, words: Any) -> Any:
        """Publish a snapshot in the folder of a store; its `TrainResult`.

        words  the thread that counts words
        """


MODELS: Registry[Callable[[ModelConfig], Trainer], ModelTraits] = Registry(
    "model", "yeoron.models", {"sgns": "embedding.models.sgns"}, lab=True
)
"""Models that nodes train block by block: those built in, and those of other packages."""

COUNT_MODELS: Registry[type[CountedModel], ModelTraits] = Registry(
    "counted model", "yeoron.counted_models", lab=True
)
"""Models that are counted in one pass, by no node and no server."""

COLUMN_MODEL = Need(
    "split columns", MODELS, "minibatches", "it is not learnt by one number an example"
)
ROUNDS_MODEL = Need(
    "policies with rounds of L-BFGS",
    MODELS,
    "minibatches",
    "L-BFGS needs the loss of a fixed text, which this one has not",
)
RANKED_MODEL = Need(
    "ranked replay or source weights",
    MODELS,
    "weighs_sentences",
    "it weighs and measures no sentence",
)
GPU_MODEL = Need("device cuda and sync hogwild", MODELS, "gpu", "there is no kernel of it for GPUs")


def check_model(name: str) -> str:
    """The name of a model; ValueError, for a validator of settings, names the accepted ones."""
    if name not in MODELS and name not in COUNT_MODELS:
        known = ", ".join((*MODELS, *COUNT_MODELS))
        raise ValueError(f"model {name!r}: one of {known} is accepted{MODELS.more}")
    return name


def traits_of(name: str) -> ModelTraits:
    """Of a model that is counted none, as no node trains it."""
    return ModelTraits() if name in COUNT_MODELS else MODELS.traits(name)
