"""What nodes counted in their texts of a window, and its sum: how each word's contexts are weighed.

Text stays on its node. How often words occur in all of it, and beside each other, is added up, so
that every node reads its own documents by the same vectors (ADR 46).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from embedding.kernel.fields import IDS, MOMENT, Column
from embedding.kernel.records import CodeArray, FloatArray, IntArray

SHARE_COUNTS = "share_counts"
_PAIR_BYTES = 16
"""What a pair takes in a message at most, and a word."""
SEND, WAIT, READY = "send", "wait", "ready"
"""What a server answers: hand in counts; others have yet to; read the window, by the sum or, where
nobody else reads it, by one's own counts."""


@dataclass(frozen=True)
class TextCounts:
    """Of v words.

    ids     int64 [v], row ids, increasing
    seen    float32 [v], how often each occurs
    first, second  int32 [m], places in `ids` of two words that stand beside each other, first ≤
            second; in order, each pair once
    pairs   float32 [m], how often they do
    """

    ids: Annotated[IntArray, IDS]
    seen: Annotated[FloatArray, Column("f4", ("n",), least=0, most=1e30)]
    first: Annotated[CodeArray, Column("i4", ("m",), least=0, at_most="second")]
    second: Annotated[CodeArray, Column("i4", ("m",))]
    pairs: Annotated[FloatArray, Column("f4", ("m",), least=0, most=1e30)]

    def fault(self) -> str | None:
        """What no column alone shows to be wrong."""
        if bool((np.diff(self.ids, prepend=-1) <= 0).any()):
            return "ids that increase from 0 on are accepted"
        if int(self.second.max(initial=-1)) >= len(self.ids):
            return "places among the ids are accepted"
        return None


@dataclass(frozen=True)
class ShareCounts:
    """A node is about to read a window (Unix seconds of its start).

    nodes   that share a corpus, with this one; 0: of a stream
    summed  `counts` is the sum by which it has read before
    """

    op: ClassVar = SHARE_COUNTS

    window: Annotated[int, MOMENT]
    nodes: int
    counts: TextCounts | None = None
    summed: bool = False


@dataclass(frozen=True)
class CountsAnswer:
    """What it is to do: `SEND`, `WAIT` or `READY`, and the sum if it is to take that."""

    answer: str
    counts: TextCounts | None = None


def added_up(parts: Sequence[TextCounts], most_bytes: int) -> TextCounts:
    """The sum of at least one part; pairs that do not fit into a message of so many bytes are left
    out, those that were counted least."""
    ids = np.unique(np.concatenate([part.ids for part in parts]))
    places = [np.searchsorted(ids, part.ids) for part in parts]
    seen = np.bincount(
        np.concatenate(places), np.concatenate([part.seen for part in parts]), len(ids)
    )
    keys = np.concatenate(
        [
            at[part.first] * len(ids) + at[part.second]
            for part, at in zip(parts, places, strict=True)
        ]
    )
    pairs = np.concatenate([part.pairs for part in parts])
    order = np.argsort(keys, kind="stable")
    keys, pairs = keys[order], pairs[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    keys = keys[starts]
    sums = np.add.reduceat(pairs, starts) if len(starts) else pairs
    if (most := max(most_bytes // _PAIR_BYTES - len(ids), 0)) < len(sums):
        kept = np.sort(np.argsort(-sums, kind="stable")[:most])
        keys, sums = keys[kept], sums[kept]
    first, second = (each.astype(np.int32) for each in np.divmod(keys, max(len(ids), 1)))
    return TextCounts(ids, seen.astype(np.float32), first, second, sums)
