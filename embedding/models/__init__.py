"""Embedding models: numba kernels for CPUs and their torch references."""

from embedding.models.base import BlockLoss, LocalBlock, Trainer, make_trainer
from embedding.models.config import ModelConfig

__all__ = ["BlockLoss", "LocalBlock", "ModelConfig", "Trainer", "make_trainer"]
