"""Each model tells two topics apart that never share a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from embedding.kernel.records import FloatArray
from embedding.models.base import LocalBlock, make_trainer
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.sampling import NoiseTable
from localgrams import local_grams
from yeoron_lab.counts.sppmi import CountModel

TOPIC = 10


def topics(sentences: int = 600) -> LocalBlock:
    random = np.random.default_rng(5)
    tokens = random.integers(0, TOPIC, (sentences, 8)) + TOPIC * (np.arange(sentences) % 2)[:, None]
    counts = np.bincount(tokens.ravel(), minlength=2 * TOPIC)
    return LocalBlock(
        tokens=tokens.ravel().astype(np.int32),
        sentences=np.arange(0, tokens.size + 1, 8, dtype=np.int32),
        keep=np.ones(2 * TOPIC, np.float32),
        pool=NoiseTable.build(counts).draw(512, seed=1),
        ids=np.arange(2 * TOPIC),
    )


def separation(vectors: FloatArray) -> float:
    """Mean cosine within topics minus that between topics."""
    unit = vectors[: 2 * TOPIC] / np.linalg.norm(vectors[: 2 * TOPIC], axis=1, keepdims=True)
    cosine = unit @ unit.T
    same = np.equal.outer(np.arange(2 * TOPIC) // TOPIC, np.arange(2 * TOPIC) // TOPIC)
    off = ~np.eye(2 * TOPIC, dtype=bool)
    return float(cosine[same & off].mean() - cosine[~same].mean())


@pytest.mark.parametrize("optimiser", list(Optimiser))
@pytest.mark.parametrize("model", ["sgns", "cbow", "fasttext", "glove"])
def test_topics_separate_and_the_loss_falls(model: str, optimiser: Optimiser) -> None:
    rate = 0.1 if model != "fasttext" else 0.03
    config = ModelConfig(model=model, optimiser=optimiser, dim=12, window=4, learning_rate=rate)
    block = topics()
    rows = 2 * TOPIC
    extra: dict[str, Any] = {}
    if model == "fasttext":
        words = [f"{'가나다라마바사아자차'[i % 10]}{'꽃별'[i // 10]}" for i in range(rows)]
        grams = local_grams(words, 1000)
        extra = {
            "subwords": grams.rows,
            "subword_offsets": grams.offsets,
            "subword_ids": grams.buckets,
        }
        rows += len(grams.buckets)
        block = LocalBlock(
            block.tokens, block.sentences, block.keep, block.pool, block.ids, **extra
        )
    random = np.random.default_rng(2)
    vectors = ((random.random((rows, config.width)) - 0.5) / 12).astype(np.float32)
    contexts = np.zeros((2 * TOPIC, config.width), np.float32)
    trainer = make_trainer(config)
    losses = [
        trainer.train(block, vectors, contexts, learning_rate=rate, seed=s).mean for s in range(15)
    ]
    if model == "fasttext":
        vectors = grams.means(vectors)
    assert losses[-1] < losses[0]
    assert separation(vectors[:, : config.dim]) > 0.5


def test_counting_separates_topics_too() -> None:
    model = CountModel(ModelConfig(model="sppmi", dim=4, window=4))
    assert model.count(topics(), seed=1) == 4800
    vectors, contexts = model.fit(2 * TOPIC)
    assert vectors.shape == contexts.shape == (2 * TOPIC, 4)
    assert separation(vectors) > 0.5
