"""What stood around words as arrays of a message, and back; the malformed is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.exchange.headers import COUNT, INTEGER, POSITIVE_COUNT, STRING, Accepted, rows
from embedding.exchange.payload import ContextShift, ContextSums, HandIn, Inherited, WordContexts
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray

USED = ("used_ids", "used_sums", "used_documents")
_HEAVIEST = 60_000.0
"""Within float16."""
_MOST_PARTS = 50_000
"""Parts in a push; a source has UNITS parts for each of TIMES."""


def word_context_arrays(rare: WordContexts) -> dict[str, Array]:
    """As they travel, beside the rows of a push."""
    return {
        "young.words": np.stack([rare.ids, rare.mentions], axis=1).astype(np.int64),
        "young.sizes": np.asarray(rare.sizes, dtype=np.int32),
        "young.contexts": np.asarray(rare.contexts, dtype=np.int32),
        "young.weights": np.clip(rare.weights, 0.0, _HEAVIEST).astype(np.float16),
    }


def word_contexts_of(message: Message) -> WordContexts | None:
    """Inverse of `word_context_arrays`."""
    if not any(name.startswith("young.") for name in message.arrays):
        return None
    words = message.array("young.words", "i8", 2)
    if words.shape[1] != 2:
        raise RefusedError("push: `rare.words` must have two columns, ids and mentions.")
    found = WordContexts(
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
        raise RefusedError("push: the columns of `rare` differ in length.")
    return found


def usage_arrays(parts: Sequence[ContextSums]) -> dict[str, Array]:
    """As they travel: all parts behind each other."""
    if not parts:
        return {}
    columns = (
        np.concatenate([np.asarray(part.ids, np.int64) for part in parts]),
        np.concatenate([part.sums for part in parts]),
        np.concatenate([np.asarray(part.documents, np.float32) for part in parts]),
    )
    return dict(zip(USED, columns, strict=True))


def usage_header(parts: Sequence[ContextSums]) -> list[list[object]]:
    """What a header says of them: window, source, part, words."""
    return [[part.window, part.source, part.part, len(part.ids)] for part in parts]


def usage_of(message: Message) -> tuple[ContextSums, ...]:
    """Inverse of `usage_arrays`."""
    fields = {"window": INTEGER, "source": STRING, "part": COUNT, "words": COUNT}
    described = rows(message.header.get("usage", []), "usage", fields, most=_MOST_PARTS)
    sizes = [size for *_, size in described]
    if not any(name in message.arrays for name in USED):
        if sum(sizes):
            raise RefusedError("push: `usage` names words whose columns are missing.")
        return ()
    ids = message.array("used_ids", "i8", 1)
    sums = message.array("used_sums", "f4 f2", 2)
    documents = message.array("used_documents", "f4", 1)
    if not len(ids) == len(sums) == len(documents) == sum(sizes):
        raise RefusedError("push: the columns of `usage` differ in length.")
    found, start = [], 0
    for (window, source, part, _), size in zip(described, sizes, strict=True):
        own = slice(start, start + size)
        found.append(ContextSums(window, source, part, ids[own], sums[own], documents[own]))
        start += size
    return tuple(found)


def hand_in_header(hand_ins: Sequence[HandIn]) -> list[list[object]]:
    """As they travel."""
    return [
        [
            *(one.window, one.first),
            [[each.life, each.source, each.documents, each.gone] for each in one.inherited],
        ]
        for one in hand_ins
    ]


def hand_ins_of(header: object) -> tuple[HandIn, ...]:
    """Inverse of `hand_in_header`."""
    listed = Accepted("a list", lambda value: isinstance(value, list))
    fields = {"life": STRING, "source": STRING, "documents": COUNT, "gone": COUNT}
    outer = {"window": INTEGER, "first": POSITIVE_COUNT, "inherited": listed}
    return tuple(
        HandIn(
            window,
            first,
            tuple(Inherited(*each) for each in rows(some, "inherited", fields, most=_MOST_PARTS)),
        )
        for window, first, some in rows(header, "hand_ins", outer, most=_MOST_SHIFTS)
    )


SHIFTS = ("shift_ids", "shift_figures")
_MOST_SHIFTS = 1_000
"""Windows in a push."""


def shift_arrays(shifts: Sequence[ContextShift]) -> dict[str, Array]:
    """As they travel: of each window ids, sizes and contexts, and weights in front of figures."""
    if not shifts:
        return {}
    numbers = [each for one in shifts for each in (one.ids, one.sizes, one.contexts)]
    figures = [each for one in shifts for each in (_in_rows(one.weights), one.figures)]
    return {
        "shift_ids": np.concatenate(numbers).astype(np.int64),
        "shift_figures": np.concatenate(figures).astype(np.float32),
    }


def shift_header(shifts: Sequence[ContextShift]) -> list[list[int]]:
    """What a header says of them: window, words, contexts."""
    return [[one.window, len(one.ids), len(one.contexts)] for one in shifts]


def shifts_of(message: Message) -> tuple[ContextShift, ...]:
    """Inverse of `shift_arrays`."""
    fields = {"window": INTEGER, "words": COUNT, "contexts": COUNT}
    described = rows(message.header.get("shifts", []), "shifts", fields, most=_MOST_SHIFTS)
    if not any(words for _, words, _ in described):
        return ()
    numbers = message.array("shift_ids", "i8", 1)
    figures = message.array("shift_figures", "f4", 2)
    lengths = sum(2 * n + m for _, n, m in described), sum(n + m for _, n, m in described)
    if (len(numbers), *figures.shape) != (*lengths, 3):
        raise RefusedError("push: the columns of `shifts` are of other lengths than it says.")
    found, first, row = [], 0, 0
    for window, n, m in described:
        ids, sizes, contexts = np.split(numbers[first : first + 2 * n + m], [n, 2 * n])
        weights, own = np.split(figures[row : row + n + m], [n])
        if bool((sizes < 0).any()) or int(sizes.sum()) != m:
            raise RefusedError("push: the sizes of `shifts` do not add up to its contexts.")
        found.append(ContextShift(window, ids, weights[:, 0], sizes, contexts, own))
        first, row = first + 2 * n + m, row + n + m
    return tuple(found)


def _in_rows(weights: FloatArray) -> FloatArray:
    """float32 [n, 3], the weights first."""
    found = np.zeros((len(weights), 3), dtype=np.float32)
    found[:, 0] = weights
    return found
