"""Counts of words that a node knows no row of, and a client that does not wait long."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup

QUICK = ExchangeConfig(
    rows="float32", compression="none", connect_timeout_s=60, max_backoff_s=0.1
).model_copy(update={"request_timeout_s": 60, "pull_timeout_s": 60})

LEARNT = {
    "rehearsal": {"held_out_loss": 1.0, "held_out_untrained": 4.2, "held_out_unigram": 2.7},
}
"""A node's report after which a model of a few words can be read."""


def named(
    words: Sequence[str], n: int = 1, *, source: str = "뉴스", window: int = 0
) -> BlockCounts:
    """Each word `n` times, in one document."""
    size = len(words)
    counts = np.full(size, n, dtype=np.int64)
    ids = np.full(size, -1, dtype=np.int64)
    return BlockCounts(
        (CountGroup(source, window, size),), ids, list(words), counts, np.ones_like(counts)
    )


def joined(*parts: BlockCounts) -> BlockCounts:
    """Several counts in one; their groups differ."""
    groups: list[CountGroup] = []
    stop = 0
    for part in parts:
        groups.extend(CountGroup(g.source, g.window, stop + g.stop) for g in part.groups)
        stop += len(part.ids)
    return BlockCounts(
        tuple(groups),
        np.concatenate([part.ids for part in parts]),
        [word for part in parts for word in part.words],
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.documents for part in parts]),
    )
