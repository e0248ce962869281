"""How a snapshot says how words were used and counted, from what nodes handed in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import BUSIEST, UNITS
from embedding.kernel.positions import positions
from embedding.kernel.records import HalfArray, IntArray, WordCounts
from embedding.server.words.counts import as_word_counts, summed
from embedding.server.words.digests import WordDigests
from embedding.server.words.shifts import PullingContexts
from embedding.server.words.usage import SourceUsage
from embedding.snapshots.pulls import ContextPulls
from embedding.snapshots.usage import Usage

_ROWS = 1024
"""Sums that are divided at a time, so that they stay in a core's cache."""


def counted(
    tables: Mapping[int, pa.Table], digests: WordDigests, keep: Collection[str]
) -> WordCounts:
    """How often words occurred by source, of several windows; words that had no row at the last
    checkpoint are words again.

    tables  by starts of windows
    keep    words of the snapshot: others are left out
    """
    words = list(keep)
    shown, kept = pa.array(words, pa.string()), {}
    for start, table in tables.items():
        revealed = digests.revealed(table, words)
        revealed = revealed if revealed is table else summed(revealed)
        kept[start] = revealed.filter(pc.is_in(revealed["word"], value_set=shown))
    return as_word_counts(kept)


def usage_of(sums: Sequence[SourceUsage], ids: IntArray) -> Usage | None:
    """How words were used, by the sums of a window; None where there are none.

    ids  int64 [n], of the words of the snapshot: those of others are left out, and the past of
         words whose use in the window nobody sent, as nothing is compared with it
    """
    order = np.argsort(ids, kind="stable")
    parts: dict[int, list[tuple[IntArray, SourceUsage, IntArray]]] = {0: []}
    used = np.zeros(len(ids), dtype=np.bool_)
    for part in sorted(sums, key=lambda each: each.time):
        at = positions(ids[order], part.ids)
        known = np.flatnonzero(at >= 0)
        if part.time <= 1:
            used[at[known]] = True
        else:
            known = known[used[at[known]]]
        parts.setdefault(part.time, []).append((order[at[known]], part, known))
    if not parts[0]:
        return None
    busiest = parts.pop(BUSIEST, None)
    times = sorted(time for time in parts if time) if 1 in parts else []
    return replace(
        _usage(parts[0]),
        reread=tuple(_usage(parts[time]) for time in times),
        busiest=None if busiest is None else _usage(busiest),
    )


def pulls_of(pulled: PullingContexts, ids: IntArray) -> ContextPulls:
    """The contexts of words by rows of a snapshot. ids: int64 [n], of its words."""
    order = np.argsort(ids, kind="stable")
    words, contexts = (positions(ids[order], each) for each in (pulled.words, pulled.contexts))
    known = np.flatnonzero((words >= 0) & (contexts >= 0))
    rows = order[words[known]]
    known = known[np.argsort(rows, kind="stable")]
    figures = pulled.figures[known]
    return ContextPulls(
        order[words[known]].astype(np.int64),
        order[contexts[known]].astype(np.int64),
        *(np.ascontiguousarray(figures[:, at]) for at in range(3)),
    )


def _usage(parts: Sequence[tuple[IntArray, SourceUsage, IntArray]]) -> Usage:
    """Of some sources: rows in the snapshot, sums, and which of them have these rows."""
    documents = np.concatenate([part.documents[at] for _, part, at in parts])
    return Usage(
        rows=np.concatenate([rows for rows, _, _ in parts]),
        sources=[part.source for rows, part, _ in parts for _ in range(len(rows))],
        mentions=documents.sum(axis=1).astype(np.int64),
        pairs=documents,
        means=_means([(part, at) for _, part, at in parts]),
    )


def _means(parts: Sequence[tuple[SourceUsage, IntArray]]) -> HalfArray:
    """Means of some places as float16, precise to a thousandth; 0 where nothing was added."""
    shape = sum(len(at) for _, at in parts), UNITS, parts[0][0].sums.shape[1]
    means_of = np.empty(shape, dtype=np.float16)
    first = 0
    for part, at in parts:
        units = part.units[at]
        documents = np.ones(len(part.sums), dtype=np.float32)
        documents[units] = np.maximum(part.documents[at], np.float32(1e-9))
        means = np.empty_like(part.sums)
        for start in range(0, len(means), _ROWS):
            some = slice(start, start + _ROWS)
            means[some] = narrow(widen(part.sums[some]) / documents[some, None])
        # "raise", the usual mode, would write to memory of its own first.
        np.take(means, units, axis=0, out=means_of[first : first + len(at)], mode="clip")
        first += len(at)
    return means_of
