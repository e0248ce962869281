"""Sums of what stood around words as arrays of a message, and back; the malformed is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.payload import Reread, Surroundings, Usage
from embedding.exchange.wire import Array, Message

USED = ("used_at", "used_values", "used_pairs")
REREAD = ("reread_ids", "reread_values", "reread_pairs")
MOST_REREAD = 10_000
"""Parts in a push; of a part one needs a source and eight parts of its documents."""


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


def reread_arrays(parts: Sequence[Reread]) -> dict[str, Array]:
    """As they travel, one behind the other; none where nothing was read again."""
    if not parts:
        return {}
    columns = (
        np.concatenate([np.asarray(part.ids, np.int64) for part in parts]),
        np.concatenate([part.slopes for part in parts]),
        np.concatenate([np.asarray(part.pairs, np.float32) for part in parts]),
    )
    return dict(zip(REREAD, columns, strict=True))


def reread_header(parts: Sequence[Reread]) -> list[list[object]]:
    """What a header says of them: window, source, part, words."""
    return [[part.window, part.source, part.part, len(part.ids)] for part in parts]


def reread_of(message: Message) -> tuple[Reread, ...]:
    """Inverse of `reread_arrays` and `reread_header`."""
    rows = message.header.get("reread", [])
    if not isinstance(rows, list) or len(rows) > MOST_REREAD:
        raise RefusedError(f"push: `reread` must be a list of at most {MOST_REREAD:,} rows.")
    if not rows:
        return ()
    ids = message.array(REREAD[0], "i8", 1)
    values, pairs = message.array(REREAD[1], "f4 f2", 2), message.array(REREAD[2], "f4", 1)
    sizes = [_size(row) for row in rows]
    if not len(ids) == len(values) == len(pairs) == sum(sizes):
        raise RefusedError("push: the columns of `reread` differ in length from what it names.")
    found, start = [], 0
    for (window, source, part, _), size in zip(rows, sizes, strict=True):
        at = slice(start, start + size)
        found.append(Reread(window, source, part, ids[at], values[at], pairs[at]))
        start += size
    return tuple(found)


def _size(row: object) -> int:
    """The number of words of a row of `reread` that is as it should be."""
    if isinstance(row, list) and len(row) == 4:
        window, source, part, size = row
        whole = all(type(number) is int for number in (window, part, size))
        if whole and isinstance(source, str) and part >= 0 and size >= 0:
            return int(size)
    raise RefusedError("push: a row of `reread` must be [window, source, part, words].")
