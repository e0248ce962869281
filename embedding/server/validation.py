"""What is checked about a message before a row changes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.exchange.compression.base import unpack
from embedding.exchange.compression.halves import widen
from embedding.exchange.payload import (
    TIMES,
    UNITS,
    ContextShift,
    ContextSums,
    RowDelta,
    WordContexts,
)
from embedding.exchange.protocol import Push
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, ScorePairs
from embedding.server.words.vocabulary import Vocabulary

MAX_SQUARED_NORM = 1e12
"""Squared norm of a whole delta above which training has diverged; NaN and inf exceed it too."""
MAX_MENTIONS = 2**40
MAX_WEIGHT = 1e6


def checked(push: Push, dim: int, most_bytes: int) -> Push:
    """The push with its rows unpacked and as float32; shapes, ids and values were looked at.

    most_bytes  memory that the packed rows of a table may take when unpacked

    RefusedError says what is wrong with it.
    """
    where = f"push {push.sequence} of node {push.node}"
    deltas = []
    packed = (unpack(each, dim=dim, most_bytes=most_bytes) for each in push.packed)
    for delta in chain(push.deltas, packed):
        ids, values = delta.ids, delta.values
        if values.shape != (len(ids), dim):
            raise RefusedError(
                f"{where}: table {delta.table} has values of shape {values.shape}; "
                f"{(len(ids), dim)} is accepted.",
                kind="shape",
            )
        if not _distinct(ids):
            raise RefusedError(f"{where}: table {delta.table}: an id is named twice.", kind="id")
        values = widen(values) if values.dtype == np.float16 else values
        deltas.append(RowDelta(delta.table, ids, values))
        if not bounded(values):
            raise RefusedError(
                f"{where}: table {delta.table} holds values that are not finite or are absurdly "
                "large: the node's training has diverged.",
                kind="values",
            )
    rare = None if push.rare is None else _checked_rare(push.rare, where)
    usage = tuple(_checked_usage(part, dim, where) for part in push.usage)
    for shift in push.shifts:
        _check_shift(shift, where)
    return replace(push, deltas=tuple(deltas), packed=(), rare=rare, usage=usage)


def _check_shift(shift: ContextShift, where: str) -> None:
    """RefusedError for figures that no window has."""
    most = np.float32(MAX_MENTIONS)
    fit = bool(np.all((shift.weights > 0) & (shift.weights <= most)))
    if not fit or not bool(np.all(np.abs(shift.figures) <= most)):
        raise RefusedError(
            f"{where}: contexts that pulled words, whose figures are not finite or absurdly large.",
            kind="values",
        )
    if not _distinct(shift.ids):
        raise RefusedError(f"{where}: contexts that pulled a word name it twice.", kind="id")


def _checked_usage(part: ContextSums, dim: int, where: str) -> ContextSums:
    """Sums of contexts as they are; RefusedError says what is wrong with them."""
    shape = (len(part.documents), dim)
    if part.sums.shape != shape:
        raise RefusedError(
            f"{where}: the context sums of its words have the shape {part.sums.shape}; "
            f"{shape} is accepted.",
            kind="shape",
        )
    if part.part >= TIMES * UNITS:
        raise RefusedError(
            f"{where}: context sums of part {part.part}; 0 to {TIMES * UNITS - 1} are accepted.",
            kind="id",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        fit = bounded(widen(part.sums)) and bool(part.documents.sum() <= MAX_SQUARED_NORM)
    if not fit or np.any(part.documents < 0):
        raise RefusedError(
            f"{where}: context sums that are not finite, negative or absurdly large.",
            kind="values",
        )
    if not _distinct(part.ids):
        raise RefusedError(f"{where}: context sums name an id twice.", kind="id")
    return part


def bounded(values: FloatArray | HalfArray) -> bool:
    """Whether all are finite and none absurdly large.

    One pass of a dot product finds NaN, infinity and divergence without a temporary.
    """
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.dot(flat, flat))
    return math.isfinite(norm) and norm <= MAX_SQUARED_NORM


def _checked_rare(rare: WordContexts, where: str) -> WordContexts:
    """What stood around words, weights as float32; RefusedError says what is wrong with it."""
    same = len(rare.ids) == len(rare.sizes) == len(rare.mentions)
    if not same or not int(rare.sizes.sum()) == len(rare.contexts) == len(rare.weights):
        raise RefusedError(
            f"{where}: the contexts of young words have other numbers than their sizes say.",
            kind="shape",
        )
    if not _distinct(rare.ids):
        raise RefusedError(f"{where}: a young word is named twice.", kind="id")
    weights = rare.weights.astype(np.float32)
    fit = bool(np.all((weights > 0) & (weights <= MAX_WEIGHT)) and np.all(rare.sizes >= 0))
    if not fit or np.any((rare.mentions < 1) | (rare.mentions > MAX_MENTIONS)):
        raise RefusedError(
            f"{where}: contexts of young words whose weights or mentions are not finite, not "
            "above 0 or absurdly large.",
            kind="values",
        )
    return replace(rare, contexts=rare.contexts.astype(np.int64), weights=weights)


def check_ids(push: Push, vocabulary: Vocabulary) -> None:
    """RefusedError when a push counts, or tells of, a word by an id that was never given."""
    for part in push.usage:
        vocabulary.slots(part.ids, "push")
    for shift in push.shifts:
        vocabulary.slots(shift.ids, "push")
        vocabulary.slots(shift.contexts, "push")
    vocabulary.slots(push.counts.ids[push.counts.ids >= 0], "push")
    if push.rare is not None:
        vocabulary.slots(push.rare.ids, "push")
        vocabulary.slots(push.rare.contexts.astype(np.int64), "push")


def check_buckets(ids: IntArray, buckets: int, what: str) -> IntArray:
    """The same ids; RefusedError unless each is a bucket of the table of n-grams."""
    if not buckets:
        raise RefusedError(
            f"{what}: rows of n-grams are named; this server has none, its model is not fasttext.",
            kind="id",
        )
    if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= buckets):
        raise RefusedError(
            f"{what}: n-gram buckets {int(ids.min())} to {int(ids.max())} are named; 0 to "
            f"{buckets - 1} are accepted.",
            kind="id",
        )
    return ids


def _distinct(ids: IntArray) -> bool:
    """Whether no id occurs twice: quick for sorted ids, or two sorted runs of them."""
    if len(ids) < 2:
        return True
    steps = np.diff(ids) > 0
    if bool(steps.all()):
        return True
    ordered = np.sort(ids, kind="stable")
    return bool((np.diff(ordered) > 0).all())


def check_score(score: ScorePairs, vocabulary: Vocabulary) -> tuple[IntArray, IntArray, IntArray]:
    """Slots of centres, contexts and negatives, -1 for evicted ids; RefusedError for others."""
    negatives = score.negatives
    flat = vocabulary.slots(negatives.reshape(-1), "pull (score)")
    return (
        vocabulary.slots(score.centres, "pull (score)"),
        vocabulary.slots(score.contexts, "pull (score)"),
        flat.reshape(negatives.shape),
    )


MAX_NODES = 10_000
MAX_SOURCES = 10_000
MAX_NAME = 1_000
MAX_WORD_BYTES = 16_384
MAX_REPORT_BYTES = 256 * 1024
MAX_COUNT = 2**40
"""Most occurrences of a word, tokens or pairs in one push: sums of them stay exact."""

_UNFIT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def check_nodes(known: Collection[str], nodes: Collection[str]) -> None:
    """RefusedError for a name that cannot be shown, or one node too many beside those `known`."""
    # Without the lock: to look into a dictionary is one step, and one node more does no harm.
    fresh = [node for node in nodes if node not in known]
    for node in nodes:
        check_name("node", node)
    if fresh and len(known) + len(fresh) > MAX_NODES:
        raise RefusedError(
            f"node {fresh[0]}: {MAX_NODES} nodes are known already; use the names of these.",
            kind="limit",
        )


def check_report(node: str, report: dict[str, Any], known: Collection[str]) -> None:
    """RefusedError for a report that is too large, or names sources too many beside those known."""
    size = len(json.dumps(report))
    if size > MAX_REPORT_BYTES:
        raise RefusedError(
            f"report of node {node}: {size} bytes; at most {MAX_REPORT_BYTES} are accepted.",
            kind="size",
        )
    sources = report.get("sources")
    if isinstance(sources, dict):
        _check_sources(sources, known)


def check_push(push: Push, known: Collection[str]) -> None:
    """RefusedError for names, counts or words that no node has; sources that are known."""
    counts = push.counts
    named = {g.source for g in counts.groups} | {each.source for each in push.usage}
    _check_sources(named | {p.source for p in push.progress}, known)
    most = max([push.tokens, push.pairs, *(p.tokens + p.documents for p in push.progress)])
    if len(counts.counts):
        most = max(most, int(counts.counts.max()))
    if most > MAX_COUNT:
        raise RefusedError(
            f"push {push.sequence} of node {push.node}: a count of {most}; at most {MAX_COUNT} "
            "is accepted.",
            kind="limit",
        )
    if isinstance(counts.words, pa.Array):
        check_words(counts.words)


def check_words(words: pa.Array) -> None:
    """RefusedError for a text that is no word: the vocabulary would keep it."""
    if not len(words):
        return
    longest = int(np.diff(np.frombuffer(words.buffers()[1], dtype=np.int32)).max())
    if longest > MAX_WORD_BYTES:
        raise RefusedError(
            f"a word of {longest} bytes; at most {MAX_WORD_BYTES} are accepted.", kind="size"
        )


def check_gathered(
    score: Sequence[ScorePairs], known: Collection[str], dim: int, most_bytes: int
) -> None:
    """RefusedError when the rows to score, which are gathered of one source at a time, do not fit
    into one message, or are of sources too many beside those known."""
    gathered = max((2 * len(each.centres) + each.negatives.size for each in score), default=0)
    check_rows(gathered, dim, most_bytes, what="rows to score")
    _check_sources({each.source for each in score}, known)


def check_rows(
    rows: int, dim: int, most_bytes: int, *, half: bool = False, what: str = "rows"
) -> None:
    """RefusedError when so many rows do not fit into one message."""
    size = rows * dim * (2 if half else 4)
    if size > most_bytes:
        raise RefusedError(
            f"pull: {rows} {what} make {size} bytes; max_message_bytes of the server allows "
            f"{most_bytes}.",
            kind="size",
        )


def _check_sources(names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        check_name("source", name)
    fresh = sum(name not in known for name in names)
    if fresh and len(known) + fresh > MAX_SOURCES:
        raise RefusedError(
            f"{fresh} new sources: {len(known)} are known already; at most {MAX_SOURCES} are "
            "accepted.",
            kind="limit",
        )


def check_name(what: str, name: str) -> None:
    """RefusedError for a name that cannot be shown."""
    if len(name) > MAX_NAME or _UNFIT.search(name):
        shown = name[:40].encode("unicode_escape").decode()
        raise RefusedError(
            f"{what} {shown}: a name of at most {MAX_NAME} characters without control characters "
            "is accepted.",
            kind="request",
        )
