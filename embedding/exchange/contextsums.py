"""What stood around words as arrays of a message, and back; the malformed is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.payload import Reread, Surroundings, Usage
from embedding.exchange.wire import Array, Message
from embedding.records import IntArray

USED = ("used_at", "used_values", "used_pairs")
_HEAVIEST = 60_000.0
"""Within float16."""
MOST_REREAD = 10_000
"""Parts in a push; of a part one needs a source and eight parts of its documents."""


def surroundings_arrays(young: Surroundings) -> dict[str, Array]:
    """As they travel, beside the rows of a push."""
    return {
        "young.words": np.stack([young.ids, young.mentions], axis=1).astype(np.int64),
        "young.sizes": np.asarray(young.sizes, dtype=np.int32),
        "young.contexts": np.asarray(young.contexts, dtype=np.int32),
        "young.weights": np.clip(young.weights, 0.0, _HEAVIEST).astype(np.float16),
    }


def surroundings_of(message: Message) -> Surroundings | None:
    """Inverse of `surroundings_arrays`."""
    if not any(name.startswith("young.") for name in message.arrays):
        return None
    words = message.array("young.words", "i8", 2)
    if words.shape[1] != 2:
        raise RefusedError("push: `young.words` must have two columns, ids and mentions.")
    found = Surroundings(
        np.ascontiguousarray(words[:, 0]),
        np.ascontiguousarray(words[:, 1]),
        message.array("young.sizes", "i4", 1).astype(np.int64),
        message.array("young.contexts", "i4", 1),
        message.array("young.weights", "f2", 1),
    )
    if (
        len(found.ids) != len(found.sizes)
        or bool((found.sizes < 0).any())
        or not int(found.sizes.sum()) == len(found.contexts) == len(found.weights)
    ):
        raise RefusedError("push: the columns of `young` differ in length.")
    return found


def usage_arrays(usage: Usage | None, reread: Sequence[Reread] = ()) -> dict[str, Array]:
    """As they travel, beside the counts of a push; what was read again stands behind the rest."""
    told: list[Usage | Reread] = [*([] if usage is None else [usage]), *reread]
    if not told:
        return {}
    places = [each.at if isinstance(each, Usage) else each.ids for each in told]
    columns = (
        np.concatenate([np.asarray(at, np.int64) for at in places]),
        np.concatenate([each.slopes for each in told]),
        np.concatenate([np.asarray(each.pairs, np.float32) for each in told]),
    )
    return dict(zip(USED, columns, strict=True))


def reread_header(parts: Sequence[Reread]) -> list[list[object]]:
    """What a header says of texts that were read again: window, source, part, words."""
    return [[part.window, part.source, part.part, len(part.ids)] for part in parts]


def usage_of(message: Message, counted: int) -> tuple[Usage | None, tuple[Reread, ...]]:
    """Inverse of `usage_arrays`; `counted` rows of counts are there to belong to."""
    rows = message.header.get("reread", [])
    if not isinstance(rows, list) or len(rows) > MOST_REREAD:
        raise RefusedError(f"push: `reread` must be a list of at most {MOST_REREAD:,} rows.")
    sizes = [_size(row) for row in rows]
    if not any(name in message.arrays for name in USED):
        if sum(sizes):
            raise RefusedError("push: `reread` names words whose columns are missing.")
        return None, ()
    at = message.array("used_at", "i8", 1)
    values, pairs = message.array("used_values", "f4 f2", 2), message.array("used_pairs", "f4", 1)
    if not len(at) == len(values) == len(pairs):
        raise RefusedError("push: the columns of `used` differ in length.")
    first = len(at) - sum(sizes)
    if first < 0:
        raise RefusedError("push: `reread` names more words than its columns hold.")
    found, start = [], first
    for (window, source, part, _), size in zip(rows, sizes, strict=True):
        own = slice(start, start + size)
        found.append(Reread(window, source, part, at[own], values[own], pairs[own]))
        start += size
    usage = Usage(at[:first], values[:first], pairs[:first])
    _check_places(usage.at, counted)
    return usage if first or not rows else None, tuple(found)


def _check_places(at: IntArray, counted: int) -> None:
    if len(at) and (int(at[0]) < 0 or int(at[-1]) >= counted or not bool((np.diff(at) > 0).all())):
        raise RefusedError(
            f"push: `used_at` must name rows of the {counted} counts, each once, in order."
        )


def _size(row: object) -> int:
    """The number of words of a row of `reread` that is as it should be."""
    if isinstance(row, list) and len(row) == 4:
        window, source, part, size = row
        whole = all(type(number) is int for number in (window, part, size))
        if whole and isinstance(source, str) and part >= 0 and size >= 0:
            return int(size)
    raise RefusedError("push: a row of `reread` must be [window, source, part, words].")
