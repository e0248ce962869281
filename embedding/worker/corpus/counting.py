"""What a token block adds to the counts by word, source and window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedding.exchange.payload import BlockCounts, CountGroup
from embedding.kernel.positions import ranges
from embedding.kernel.records import COUNT_COLUMNS, Calendar, IntArray, SourceProgress, TokenBlock
from embedding.models.jit import kernel
from embedding.worker.corpus.authors import Authors

_MOST_LAGS = 256
"""Lags of one source that a push tells: of more documents it tells those of every so manieth."""


def window_of(blocks: Sequence[TokenBlock], calendar: Calendar) -> int:
    """Start (Unix seconds) of the latest window that a tick holds text of."""
    latest = max((float(b.published.max()) for b in blocks if len(b.published)), default=0.0)
    return calendar.start(latest)


def count_words(
    blocks: Sequence[TokenBlock],
    tables: Sequence[IntArray],
    calendar: Calendar,
    authors: Authors | None = None,
) -> BlockCounts:
    """Counts of several blocks, by source and window.

    tables   for each block int64 [W], the row id of each of its words, -1 for none
    authors  by whom words were used before. None, or a block without voices: no author is known
    """
    groups: list[CountGroup] = []
    names: list[str] = []
    parts: list[tuple[IntArray, ...]] = []
    rows = 0
    for block, table in zip(blocks, tables, strict=True):
        starts = calendar.starts(block.published)
        for window in np.unique(starts).tolist():
            which = np.flatnonzero(starts == window)
            codes, *columns = _count(block, window, which, authors)
            # By id, in which order they take the fewest bytes; words without one keep theirs.
            order = np.argsort(table[codes], kind="stable")
            codes, ids = codes[order], table[codes[order]]
            names.extend(block.words[code] for code in codes[ids < 0].tolist())
            parts.append((ids, *(column[order] for column in columns)))
            rows += len(codes)
            groups.append(CountGroup(block.source, window, rows))
    empty = (np.empty(0, dtype=np.int64),) * (1 + len(COUNT_COLUMNS))
    ids, *counted = map(np.concatenate, zip(empty, *parts, strict=True))
    return BlockCounts(tuple(groups), ids, names, *counted)


def _count(
    block: TokenBlock, window: int, which: IntArray, authors: Authors | None
) -> tuple[IntArray, ...]:
    """Codes that occur in documents `which`, and what is counted of each (`COUNT_COLUMNS`)."""
    ends = block.document_tokens().astype(np.int64)
    lengths = ends[which + 1] - ends[which]
    if not lengths.sum():
        return (np.empty(0, dtype=np.int64),) * (1 + len(COUNT_COLUMNS))
    size = len(block.words)
    if len(which) == block.n_documents:
        codes = block.codes.astype(np.int64)
    else:
        codes = block.codes[ranges(ends[which], lengths)].astype(np.int64)
    counts = np.bincount(codes, minlength=size)
    present = np.flatnonzero(counts)
    if authors is None or not len(block.voices):
        documents = np.zeros(size, dtype=np.int64)
        _spread(codes, np.cumsum(lengths), np.full(size, -1, dtype=np.int64), documents)
        used = documents[present]
        return present, counts[present], used, np.zeros_like(used), used
    owner = np.repeat(np.arange(len(which), dtype=np.int64), lengths)
    pairs = np.unique(owner * size + codes)
    holders, used = which[pairs // size], pairs % size
    first = authors.first(block, window, holders, used)
    known = first & (block.voices[holders] >= 0)
    columns = (np.bincount(part, minlength=size) for part in (used, used[known], used[first]))
    return (present, counts[present], *(column[present] for column in columns))


@kernel()
def _spread(codes: Any, ends: Any, last: Any, documents: Any) -> None:
    """In how many documents, which end at token `ends`, each code occurs; last: -1 for each."""
    at = 0
    for document in range(len(ends)):
        while at < ends[document]:
            code = codes[at]
            if last[code] != document:
                last[code] = document
                documents[code] += 1
            at += 1


def source_progress(
    blocks: Sequence[TokenBlock], calendar: Calendar, learnt_at: float
) -> tuple[SourceProgress, ...]:
    """How far each source came: one record per (source, window). `learnt_at` is wall time."""
    records = []
    for block in blocks:
        if not block.n_documents:
            continue
        starts = calendar.starts(block.published)
        lengths = np.diff(block.document_tokens())
        for window in np.unique(starts).tolist():
            chosen = starts == window
            lags = np.maximum(learnt_at - block.available[chosen], 0.0)
            lags = lags[:: -(-len(lags) // _MOST_LAGS)]
            records.append(
                SourceProgress(
                    source=block.source,
                    documents=int(chosen.sum()),
                    tokens=int(lengths[chosen].sum()),
                    published=float(block.published[chosen].max()),
                    window=window,
                    lags=tuple(np.round(lags, 3).tolist()),
                )
            )
    return tuple(records)
