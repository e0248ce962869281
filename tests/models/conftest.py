"""Blocks and tables that the tests of this room share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from embedding.kernel.records import FloatArray
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from localgrams import local_grams


@dataclass
class Bench:
    """One block with tables for it."""

    config: ModelConfig
    block: LocalBlock
    vectors: FloatArray
    contexts: FloatArray

    def copies(self) -> tuple[FloatArray, FloatArray]:
        return self.vectors.copy(), self.contexts.copy()


@pytest.fixture
def make_bench() -> Callable[..., Bench]:
    """A factory: `make_bench(config, sentences, words=…, noise=…, scale=…, ids=…)`."""

    def make(
        config: ModelConfig,
        sentences: Sequence[Sequence[int]],
        *,
        words: int = 40,
        noise: int = 60,
        scale: float = 0.3,
        ids: bool = False,
        keep: float = 1.0,
    ) -> Bench:
        random = np.random.default_rng(7)
        tokens = np.array([word for one in sentences for word in one], np.int32)
        ends = np.cumsum([0, *(len(one) for one in sentences)]).astype(np.int32)
        names = [f"여론{i}말" if i % 2 else f"word{i}" for i in range(words)]
        grams = local_grams(names, 500)
        subword = config.traits.has_subwords
        block = LocalBlock(
            tokens=tokens,
            sentences=ends,
            keep=np.full(words, keep, np.float32),
            pool=random.permutation(noise).astype(np.int32),
            ids=np.arange(noise) * 3 + 5 if ids else None,
            subwords=grams.rows if subword else None,
            subword_offsets=grams.offsets if subword else None,
            subword_ids=grams.buckets if subword and ids else None,
        )
        rows = words + (len(grams.buckets) if subword else 0)
        vectors = (random.standard_normal((rows, config.width)) * scale).astype(np.float32)
        contexts = (random.standard_normal((noise, config.width)) * scale).astype(np.float32)
        return Bench(config, block, vectors, contexts)

    return make


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    """Each device that is here."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return str(request.param)
