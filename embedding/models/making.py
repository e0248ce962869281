"""Makes the trainer that a model's settings name."""

from __future__ import annotations

from embedding.kernel.errors import ConfigError
from embedding.models.base import Trainer
from embedding.models.config import ModelConfig
from embedding.models.traits import COUNT_MODELS, MODELS, TORCH_MODEL


def make_trainer(config: ModelConfig, *, torch: bool = False) -> Trainer:
    """The trainer that `config.model` names; its kernel is imported (not compiled) here.

    torch: the torch reference instead of the kernels, on a GPU where there is one.
    Raises ConfigError for a model that is counted, or has no torch reference.
    """
    if config.model in COUNT_MODELS:
        raise ConfigError(
            f"{config.model} is counted, not trained block by block: no trainer learns it."
        )
    if not torch:
        return MODELS.get(config.model)(config)
    TORCH_MODEL.check(config.model)
    from embedding.models.reference import make_torch_trainer  # torch takes a second

    return make_torch_trainer(config)
