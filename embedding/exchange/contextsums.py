"""Sums of what stood around words as arrays of a message, and back; the malformed is refused."""

from __future__ import annotations

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.payload import Surroundings, Usage
from embedding.exchange.wire import Array, Message

USED = ("used_at", "used_values", "used_pairs")


def surroundings_arrays(young: Surroundings) -> dict[str, Array]:
    """As they travel, beside the rows of a push."""
    return {
        "young.ids": np.asarray(young.ids, dtype=np.int64),
        "young.values": young.sums,
        "young.weights": np.asarray(young.weights, dtype=np.float32),
        "young.mentions": np.asarray(young.mentions, dtype=np.int64),
    }


def surroundings_of(message: Message) -> Surroundings | None:
    """Inverse of `surroundings_arrays`."""
    if not any(name.startswith("young.") for name in message.arrays):
        return None
    found = Surroundings(
        message.array("young.ids", "i8", 1),
        message.array("young.values", "f4 f2", 2),
        message.array("young.weights", "f4", 1),
        message.array("young.mentions", "i8", 1),
    )
    if not len(found.ids) == len(found.sums) == len(found.weights) == len(found.mentions):
        raise RefusedError("push: the columns of `young` differ in length.")
    return found


def usage_arrays(usage: Usage) -> dict[str, Array]:
    """As it travels, beside the counts of a push."""
    columns = (np.asarray(usage.at, np.int64), usage.slopes, np.asarray(usage.pairs, np.float32))
    return dict(zip(USED, columns, strict=True))


def usage_of(message: Message, counted: int) -> Usage | None:
    """Inverse of `usage_arrays`; `counted` rows of counts are there to belong to."""
    if not any(name in message.arrays for name in USED):
        return None
    found = Usage(
        message.array("used_at", "i8", 1),
        message.array("used_values", "f4 f2", 2),
        message.array("used_pairs", "f4", 1),
    )
    if not len(found.at) == len(found.slopes) == len(found.pairs):
        raise RefusedError("push: the columns of `used` differ in length.")
    at = found.at
    if len(at) and (int(at[0]) < 0 or int(at[-1]) >= counted or not bool((np.diff(at) > 0).all())):
        raise RefusedError(
            f"push: `used_at` must name rows of the {counted} counts, each once, in order."
        )
    return found
