"""A model: skip-gram at half the learning rate, without a torch reference."""

from __future__ import annotations

from embedding.kernel.records import FloatArray
from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.sgns import skip_gram_trainer
from embedding.models.traits import MODELS, ModelTraits


@MODELS.register("outside-sgns", ModelTraits(draws_noise=True, weighs_sentences=True))
class HalfRate:
    def __init__(self, config: ModelConfig) -> None:
        self._trainer = skip_gram_trainer(config)

    def train(
        self,
        block: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        rate = learning_rate / 2
        return self._trainer.train(block, vectors, contexts, learning_rate=rate, seed=seed)
