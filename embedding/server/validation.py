"""What is checked about a message before a row changes."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.compression import unpack
from embedding.exchange.halves import widen
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.records import IntArray, ScorePairs
from embedding.server.vocabulary import Vocabulary

MAX_SQUARED_NORM = 1e12
"""Squared norm of a whole delta above which training has diverged; NaN and inf exceed it too."""


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
        # One pass of a dot product finds NaN, infinity and divergence without a temporary.
        flat = values.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            norm = float(np.dot(flat, flat))
        if not (math.isfinite(norm) and norm <= MAX_SQUARED_NORM):
            raise RefusedError(
                f"{where}: table {delta.table} holds values that are not finite or are absurdly "
                "large: the node's training has diverged.",
                kind="values",
            )
    return replace(push, deltas=tuple(deltas), packed=())


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
    """Slots of centres, contexts and negatives; RefusedError for unknown ids."""
    negatives = score.negatives
    flat = vocabulary.slots(negatives.reshape(-1), "pull (score)")
    return (
        vocabulary.slots(score.centres, "pull (score)"),
        vocabulary.slots(score.contexts, "pull (score)"),
        flat.reshape(negatives.shape),
    )
