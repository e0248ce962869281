"""The kernel that adds up what the contexts of words say (`usage.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.models.jit import kernel

MOST = 60_000.0
"""Within float16."""
MILDER = 0.5
"""τ: the part of u·v by which a context is expected. How much a row expects a context is known from
one training; half of it agrees more between two of them and finds as much (ADR 17)."""


@kernel()
def add_usage(
    owners: Any,
    tokens: Any,
    sentences: Any,
    keep: Any,
    vectors: Any,
    contexts: Any,
    around: Any,
    window: int,
    slopes: Any,
    pairs: Any,
) -> None:
    """Add g and N of each token to the row `owners` of `slopes` and `pairs`; -1: to none.

    around  as many rows as `contexts`; slopes  [n, said(dim)], in the order of `payload.SAID`
    """
    dim = contexts.shape[1]
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        for i in range(first, last):
            owner, word = owners[i], tokens[i]
            if owner < 0 or word < 0:
                continue
            for j in range(max(first, i - window), min(last, i + window + 1)):
                other = tokens[j]
                if j == i or other < 0:
                    continue
                weight = np.float32((window + 1 - abs(i - j)) / window)
                if len(keep):
                    weight *= keep[other]
                dot = np.float32(0.0)
                for d in range(dim):
                    dot += contexts[other, d] * vectors[word, d]
                slope = weight / (np.float32(1.0) + np.exp(np.float32(MILDER) * dot))
                for d in range(dim):
                    slopes[owner, d] += slope * contexts[other, d]
                    slopes[owner, dim + d] += slope * vectors[other, d]
                    slopes[owner, 2 * dim + d] += slope * around[other, d]
                pairs[owner] += weight
