"""What nodes counted in their texts of a window, and its sum: how each word's contexts are weighed.

Text stays on its node. How often words occur in all of it, and beside each other, is added up, so
that every node reads its own documents by the same vectors (ADR 46).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
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

    ids: IntArray
    seen: FloatArray
    first: CodeArray
    second: CodeArray
    pairs: FloatArray


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


def written(counts: TextCounts) -> dict[str, Array]:
    """Arrays of a message."""
    return {
        "count_ids": counts.ids,
        "count_seen": counts.seen,
        "count_first": counts.first,
        "count_second": counts.second,
        "count_pairs": counts.pairs,
    }


def read(message: Message) -> TextCounts | None:
    """Inverse of `written`; None of a message without counts. RefusedError for what are none."""
    if "count_ids" not in message.arrays:
        return None
    ids, seen = message.array("count_ids", "i8", 1), message.array("count_seen", "f4", 1)
    first, second = (message.array(f"count_{n}", "i4", 1) for n in ("first", "second"))
    pairs = message.array("count_pairs", "f4", 1)
    fits = (
        len(seen) == len(ids)
        and len(first) == len(second) == len(pairs)
        and bool((np.diff(ids, prepend=-1) > 0).all())
        and bool((first >= 0).all() and (first <= second).all() and (second < len(ids)).all())
        and all(bool((np.isfinite(each) & (each >= 0)).all()) for each in (seen, pairs))
    )
    if not fits:
        raise RefusedError(
            f"{SHARE_COUNTS}: ids that increase from 0 on, places among them with first ≤ second, "
            "and counts that are finite and not negative are accepted, in columns of one length."
        )
    return TextCounts(ids, seen, first, second, pairs)
