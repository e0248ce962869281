"""Makes the trainer that a model's settings name."""

from __future__ import annotations

from embedding.kernel.errors import ConfigError
from embedding.models.base import Trainer
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.traits import COUNT_MODELS, GPU_MODEL, MODELS


def check_gpu_model(config: ModelConfig) -> None:
    """Raises ConfigError for what the kernel for GPUs does not learn."""
    GPU_MODEL.check(config.model)
    if config.optimiser is not Optimiser.SGD:
        raise ConfigError(
            f"optimiser {config.optimiser} with {GPU_MODEL.feature}: the kernel for GPUs keeps no "
            "sums of squares; sgd is accepted."
        )


def make_trainer(config: ModelConfig, *, gpu: bool = False) -> Trainer:
    """The trainer that `config.model` names; its kernel is imported (not compiled) here.

    gpu: the kernel for tables on a GPU, compiled.
    Raises ConfigError for a model that is counted or that GPUs do not learn, and without Triton.
    """
    if config.model in COUNT_MODELS:
        raise ConfigError(
            f"{config.model} is counted, not trained block by block: no trainer learns it."
        )
    if not gpu:
        return MODELS.get(config.model)(config)
    check_gpu_model(config)
    try:
        from embedding.models.gpu import GpuTrainer  # torch takes a second
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{GPU_MODEL.feature}: {error.name} is not installed; `make setup TORCH=cuda` installs "
            "it, or leave out --device cuda."
        ) from error
    trainer = GpuTrainer(config)
    trainer.warm("cuda")
    return trainer
