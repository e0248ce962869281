"""The records of `protocol.py` as messages, and back. Decoding refuses what is malformed.

Only form is checked here (kinds, lengths, signs, order); what depends on the server's state
(known ids, the clock, the sequence) is checked by the server.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.protocol import Push, VocabularyDelta
from embedding.exchange.wire import Array, Message, text_array
from embedding.records import IntArray, RowDelta, ScorePairs, SourceProgress, Table, WordCounts


def encode_push(push: Push) -> Message:
    """A push as a message; rows are not copied."""
    arrays: dict[str, Array] = {}
    for delta in push.deltas:
        arrays[f"{delta.table}.ids"] = np.asarray(delta.ids, dtype=np.int64)
        arrays[f"{delta.table}.values"] = np.asarray(delta.values, dtype=np.float32)
    counts = push.counts
    arrays["windows"] = np.asarray(counts.windows, dtype=np.int64)
    arrays["counts"] = np.asarray(counts.counts, dtype=np.int64)
    arrays["documents"] = np.asarray(counts.documents, dtype=np.int64)
    texts = {"words": text_array(counts.words), "sources": text_array(counts.sources)}
    header = {
        "op": "push",
        "node": push.node,
        "sequence": push.sequence,
        "clock": push.clock,
        "tokens": push.tokens,
        "loss_sum": push.loss_sum,
        "pairs": push.pairs,
        "tokenizer_digest": push.tokenizer_digest,
        "progress": [
            [p.source, p.documents, p.tokens, p.published, p.window, list(p.lags)]
            for p in push.progress
        ],
    }
    return Message(header, arrays, texts)


def decode_push(message: Message) -> Push:
    """Read a push; RefusedError says what is wrong with it."""
    header = message.header
    deltas = tuple(
        RowDelta(
            table,
            message.array(f"{table}.ids", "i8", 1),
            message.array(f"{table}.values", "f4", 2),
        )
        for table in Table
        if f"{table}.ids" in message.arrays or f"{table}.values" in message.arrays
    )
    loss_sum = header.get("loss_sum", 0.0)
    if type(loss_sum) not in (int, float) or not math.isfinite(loss_sum):
        raise RefusedError("push: `loss_sum` must be a finite number.")
    return Push(
        node=string(header, "node"),
        sequence=whole(header, "sequence", least=1),
        clock=whole(header, "clock"),
        deltas=deltas,
        counts=_counts(message),
        progress=_progress(header.get("progress", [])),
        tokens=whole(header, "tokens"),
        loss_sum=float(loss_sum),
        pairs=whole(header, "pairs"),
        tokenizer_digest=string(header, "tokenizer_digest"),
    )


def _counts(message: Message) -> WordCounts:
    words, sources = message.text("words"), message.text("sources")
    windows = message.array("windows", "i8", 1)
    counts = message.array("counts", "i8", 1)
    documents = message.array("documents", "i8", 1)
    if len({len(words), len(sources), len(windows), len(counts), len(documents)}) != 1:
        raise RefusedError("push: the columns of the word counts differ in length.")
    if len(counts) and (int(counts.min()) < 1 or int(documents.min()) < 0):
        raise RefusedError("push: a word count below 1 or a document count below 0.")
    if len(counts) and bool(np.any(documents > counts)):
        raise RefusedError("push: a word is in more documents than it has occurrences.")
    return WordCounts(words, sources, windows, counts, documents)


def _progress(rows: object) -> tuple[SourceProgress, ...]:
    if not isinstance(rows, list) or len(rows) > 100_000:
        raise RefusedError("push: `progress` must be a list of at most 100,000 rows.")
    found = []
    for row in rows:
        if not (isinstance(row, list) and len(row) == 6 and isinstance(row[0], str)):
            raise RefusedError(
                "push: a progress row is [source, documents, tokens, published, window, lags]."
            )
        source, documents, tokens, published, window, lags = row
        if not (type(documents) is int and type(tokens) is int and type(window) is int):
            raise RefusedError("push: documents, tokens and window of a source must be whole.")
        if documents < 0 or tokens < 0 or abs(window) > 2**40:
            raise RefusedError("push: documents and tokens of a source must not be negative.")
        if not (isinstance(lags, list) and all(_finite(lag) for lag in [published, *lags])):
            raise RefusedError("push: `published` and lags of a source must be finite numbers.")
        found.append(
            SourceProgress(source, documents, tokens, float(published), window, tuple(lags))
        )
    return tuple(found)


def _finite(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e12  # type: ignore[arg-type]


def encode_pull(
    vectors: IntArray, contexts: IntArray, clock: int, score: ScorePairs | None
) -> Message:
    """A pull as a message."""
    arrays: dict[str, Array] = {
        "vectors": np.asarray(vectors, dtype=np.int64),
        "contexts": np.asarray(contexts, dtype=np.int64),
    }
    header: dict[str, Any] = {"op": "pull", "clock": clock}
    if score is not None:
        header["score"] = score.source
        arrays["score.centres"] = np.asarray(score.centres, dtype=np.int64)
        arrays["score.contexts"] = np.asarray(score.contexts, dtype=np.int64)
        arrays["score.negatives"] = np.asarray(score.negatives, dtype=np.int64)
    return Message(header, arrays)


def decode_pull(message: Message) -> tuple[IntArray, IntArray, int, ScorePairs | None]:
    """Ids of `in`, ids of `out`, clock, pairs to score."""
    score = None
    if "score" in message.header:
        score = ScorePairs(
            source=string(message.header, "score"),
            centres=message.array("score.centres", "i8", 1),
            contexts=message.array("score.contexts", "i8", 1),
            negatives=message.array("score.negatives", "i8", 2),
        )
        if not len(score.centres) == len(score.contexts) == len(score.negatives):
            raise RefusedError("pull: the columns of the pairs to score differ in length.")
    clock = whole(message.header, "clock")
    return message.array("vectors", "i8", 1), message.array("contexts", "i8", 1), clock, score


def encode_vocabulary(delta: VocabularyDelta) -> Message:
    """A vocabulary delta as a message."""
    return Message(
        {"status": "ok", "version": delta.version},
        {"ids": delta.ids, "counts": delta.counts, "evicted": delta.evicted},
        {"words": text_array(delta.words)},
    )


def decode_vocabulary(message: Message) -> VocabularyDelta:
    """Read a vocabulary delta."""
    return VocabularyDelta(
        version=whole(message.header, "version"),
        words=tuple(message.text("words").to_pylist()),
        ids=message.array("ids", "i8", 1),
        counts=message.array("counts", "i8", 1),
        evicted=message.array("evicted", "i8", 1),
    )


def whole(header: Any, name: str, *, least: int = 0) -> int:
    """The whole number `name` of a header, at least `least`; RefusedError otherwise."""
    value = header.get(name)
    if type(value) is not int or not least <= value < 2**62:
        raise RefusedError(f"message: {name!r} must be a whole number of at least {least}.")
    return value


def string(header: Any, name: str) -> str:
    """The string `name` of a header; RefusedError otherwise."""
    value = header.get(name, "")
    if not isinstance(value, str) or len(value) > 4096:
        raise RefusedError(f"message: {name!r} must be a string of at most 4,096 characters.")
    return value
