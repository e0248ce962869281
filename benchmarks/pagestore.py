"""A large store of snapshots for `page.py`: invented words, drifting vectors, counts.

Its last snapshots hold as many sums of usage as a server keeps at most (`server.usage_words`, and
twice the words for texts that were read again), since a report reads those of the last one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from embedding.exchange.payload import UNITS
from embedding.kernel.records import FloatArray, IntArray, SnapshotData, Window, WordCounts
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage

SOURCES = ("뉴스", "게시판", "댓글")
SYLLABLES = np.array(list("가나다라마바사아자차카타파하고노도로모보소오조초구누두루무부수우주추"))
DOCUMENTS = 40_000
TOPICS = 400
SUMMED = 2
"""How many of the last snapshots hold sums of usage."""
SUMS = 100_000
"""Words, summed over sources, with sums of a window."""
REREAD = (6, 200_000)
"""Windows that are read again, and words with sums of them altogether."""


def vocabulary(n: int, rng: np.random.Generator) -> list[str]:
    """n distinct words of two to four syllables."""
    words: dict[str, None] = {}
    while len(words) < n:
        length = rng.integers(2, 5, size=n)
        drawn = rng.choice(SYLLABLES, size=(n, 4))
        words.update({"".join(row[:k]): None for row, k in zip(drawn, length, strict=True)})
    return list(words)[:n]


def make(folder: Path, snapshots: int, words: int, dim: int, seed: int = 1) -> SnapshotStore:
    """Publish daily snapshots; every day some words take the company of another topic."""
    rng = np.random.default_rng(seed)
    store = SnapshotStore(str(folder))
    names = vocabulary(words, rng)
    topics = rng.standard_normal((TOPICS, dim)).astype(np.float32)
    topic = rng.integers(TOPICS, size=words)
    own = rng.standard_normal((words, dim)).astype(np.float32) * 0.8
    share = np.minimum(0.3, 2.0 / (np.arange(words) + 8.0))
    running = np.zeros(words, np.int64)
    parent = None
    for at in range(snapshots):
        topic[rng.integers(words, size=words // 500)] = rng.integers(TOPICS)
        documents = np.stack([rng.binomial(DOCUMENTS, share) for _ in SOURCES], axis=1)
        running += documents.sum(axis=1) + 1
        noise = rng.standard_normal((words, dim)).astype(np.float32)
        scale = 0.15 + 1.5 / np.sqrt(running + 10.0)
        vectors = topics[topic] + own + noise * scale[:, None].astype(np.float32)
        start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=at)
        rows, columns = np.nonzero(documents)
        counts = documents[rows, columns]
        data = SnapshotData(
            window=Window(start, start + timedelta(days=1)),
            words=names,
            ids=np.arange(words, dtype=np.int64),
            counts=running.copy(),
            last_seen=np.full(words, start.timestamp()),
            vectors=vectors.astype(np.float32),
            contexts=vectors[::-1].astype(np.float32),
            by_source=WordCounts(
                words=[names[row] for row in rows.tolist()],
                sources=[SOURCES[column] for column in columns.tolist()],
                windows=np.full(len(rows), int(start.timestamp()), dtype=np.int64),
                counts=(counts * 1.4).astype(np.int64) + 1,
                documents=counts.astype(np.int64),
            ),
            tokens=dict.fromkeys(SOURCES, 60 * DOCUMENTS),
            documents=dict.fromkeys(SOURCES, DOCUMENTS),
            tokenizer_digest="t1",
        )
        use = usage(topics[topic], documents, rng) if at >= snapshots - SUMMED else None
        parent = store.publish(SnapshotData(**{**vars(data), "parent": parent}), use).id
    return store


def usage(placed: FloatArray, documents: IntArray, rng: np.random.Generator) -> Usage:
    """What stood around the words in a window, and in those that were read again when it began.

    placed  float32 [words, dim], what contexts of each word have in common
    held    int64 [words, sources], documents with it
    """
    windows, most = REREAD
    again = tuple(sums(placed, documents, most // windows, rng) for _ in range(windows))
    first = sums(placed, documents, SUMS, rng)
    return Usage(**{**vars(first), "reread": (first, *again)})


def sums(placed: FloatArray, inside: IntArray, most: int, rng: np.random.Generator) -> Usage:
    """The most frequent of a window's words and sources."""
    counts = inside.reshape(-1)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:most])
    chosen = chosen[counts[chosen] > 0]
    rows, sources = np.divmod(chosen, inside.shape[1])
    n, dim = len(chosen), placed.shape[1]
    # Where a word is rare most units hold none of its documents.
    documents = rng.poisson(counts[chosen, None] / UNITS, (n, UNITS)).astype(np.float32)
    means = np.empty((n, UNITS, dim), np.float16)
    for at in range(UNITS):
        noise = rng.standard_normal((n, dim), dtype=np.float32)
        means[:, at] = placed[rows] + noise / np.sqrt(np.maximum(documents[:, at], 1.0))[:, None]
    return Usage(
        rows=rows.astype(np.int64),
        sources=[SOURCES[at] for at in sources.tolist()],
        mentions=documents.sum(axis=1).astype(np.int64),
        pairs=documents,
        means=means,
    )
