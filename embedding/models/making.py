"""Makes the trainer that a model's settings name."""

from __future__ import annotations

from embedding.kernel.errors import ConfigError
from embedding.models.base import Trainer
from embedding.models.config import ModelConfig
from embedding.models.traits import COUNT_MODELS, MODELS


def make_trainer(config: ModelConfig) -> Trainer:
    """The trainer that `config.model` names; its kernel is imported (not compiled) here.

    Raises ConfigError for a model that is counted.
    """
    if config.model in COUNT_MODELS:
        raise ConfigError(
            f"{config.model} is counted, not trained block by block: no trainer learns it."
        )
    return MODELS.get(config.model)(config)
