"""The records of `protocol.py` as messages, and back. Decoding refuses what is malformed.

Only form is checked here (kinds, lengths, signs, order); what depends on the server's state
(known ids, the clock, the sequence) is checked by the server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from embedding.exchange.contextsums import (
    hand_in_header,
    hand_ins_of,
    shift_arrays,
    shift_header,
    shifts_of,
    usage_arrays,
    usage_header,
    usage_of,
    word_context_arrays,
    word_contexts_of,
)
from embedding.exchange.expressions import phrase_header, phrases_of
from embedding.exchange.headers import (
    COUNT,
    FINITE,
    FINITES,
    INTEGER,
    POSITIVE_COUNT,
    STRING,
    positive,
    rows,
    string,
    whole,
)
from embedding.exchange.pace import EVERY_BLOCK, Pace
from embedding.exchange.payload import BlockCounts, CountGroup, PackedDelta, RowDelta
from embedding.exchange.protocol import Ack, PullRequest, Push, VocabularyDelta
from embedding.exchange.shards.columns import decode_block
from embedding.exchange.wire import Array, Message, text_array
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, ScorePairs, SourceProgress, Table

_MOST_OFFSET = 1024 * 1024
"""Characters of the place of a reader: a crawler names the documents that it is waiting for."""

_MOST_GROUPS = 100_000
"""Sources, or sources in a window, that one message may tell of."""
_SCORED = ("centres", "contexts", "negatives", "windows")
"""Columns of the pairs to score, as in `ScorePairs`."""


def encode_push(push: Push) -> Message:
    """A push as a message; rows are not copied."""
    arrays: dict[str, Array] = {}
    for delta in push.deltas:
        arrays[f"{delta.table}.ids"] = np.asarray(delta.ids, dtype=np.int64)
        arrays[f"{delta.table}.values"] = delta.values
    for packed in push.packed:
        arrays[f"{packed.table}.packed"] = packed.data
    if push.rare is not None:
        arrays |= word_context_arrays(push.rare)
    batch = push.minibatches
    if batch is not None:
        arrays |= batch.arrays()
    arrays |= usage_arrays(push.usage) | shift_arrays(push.shifts)
    counts = push.counts
    arrays["counted"] = np.asarray(counts.ids, dtype=np.int64)
    occurrences, documents, authors, voices = counts.columns
    arrays["counts"] = np.asarray(occurrences, dtype=np.int64)
    # Mostly 0: a word is in as many documents as it has occurrences, each by another author.
    columns = [occurrences - documents, documents - voices, voices - authors]
    arrays["repeats"] = np.stack(columns, axis=1).astype(np.int64)
    texts = {"words": text_array(counts.words)}
    header = {
        "op": "push",
        "node": push.node,
        "sequence": push.sequence,
        "clock": push.clock,
        "tokens": push.tokens,
        "replayed": push.replayed,
        "loss_sum": push.loss_sum,
        "pairs": push.pairs,
        "tokenizer_digest": push.tokenizer_digest,
        "place": push.offset,
        "entries": push.entries,
        "keeps": push.keeps,
        "busy_s": push.busy_s,
        "packed": packed_header(push.packed),
        "groups": [[group.source, group.window, group.stop] for group in counts.groups],
        "progress": [
            [p.source, p.documents, p.tokens, p.published, p.window, list(p.lags)]
            for p in push.progress
        ],
        **({"usage": usage_header(push.usage)} if push.usage else {}),
        **({"shifts": shift_header(push.shifts)} if push.shifts else {}),
        **({"hand_ins": hand_in_header(push.hand_ins)} if push.hand_ins else {}),
        **({"life": push.life} if push.life else {}),
        **({"phrases": phrase_header(push.phrases)} if push.phrases else {}),
        **({} if batch is None else {"batch": batch.header()}),
    }
    return Message(header, arrays, texts)


def decode_push(message: Message) -> Push:
    """Read a push; RefusedError says what is wrong with it."""
    header = message.header
    deltas = tuple(
        RowDelta(
            table,
            message.array(f"{table}.ids", "i8", 1),
            message.array(f"{table}.values", "f4 f2", 2),
        )
        for table in Table
        if f"{table}.ids" in message.arrays or f"{table}.values" in message.arrays
    )
    loss_sum, busy_s = header.get("loss_sum", 0.0), header.get("busy_s", 0.0)
    if type(loss_sum) not in (int, float) or not math.isfinite(loss_sum):
        raise RefusedError("push: `loss_sum` must be a finite number.")
    if not FINITE.fits(busy_s) or busy_s < 0:
        raise RefusedError("push: `busy_s` must be a number of seconds.")
    counts = _counts(message)
    return Push(
        node=string(header, "node"),
        sequence=whole(header, "sequence", least=1),
        clock=whole(header, "clock"),
        deltas=deltas,
        counts=counts,
        progress=_progress(header.get("progress", [])),
        tokens=whole(header, "tokens"),
        replayed=whole(header, "replayed") if "replayed" in header else 0,
        loss_sum=float(loss_sum),
        pairs=whole(header, "pairs"),
        tokenizer_digest=string(header, "tokenizer_digest"),
        offset=string(header, "place", _MOST_OFFSET),
        packed=decode_packed(message),
        entries=whole(header, "entries"),
        keeps=header.get("keeps") is True,
        busy_s=float(busy_s),
        minibatches=decode_block(message),
        rare=word_contexts_of(message),
        usage=usage_of(message),
        shifts=shifts_of(message),
        hand_ins=hand_ins_of(header.get("hand_ins", [])),
        life=string(header, "life") if "life" in header else "",
        phrases=phrases_of(header.get("phrases", [])),
    )


def packed_header(packed: Sequence[PackedDelta]) -> dict[str, list[Any]]:
    """What a header says of packed rows; their bytes are parts beside it."""
    return {each.table: [each.kind, each.rows, each.dim, each.entries] for each in packed}


def decode_packed(message: Message) -> tuple[PackedDelta, ...]:
    """What compressors made; whether the bytes make sense is looked at when they are unpacked."""
    named = message.header.get("packed", {})
    if not isinstance(named, dict) or not set(named) <= {str(table) for table in Table}:
        raise RefusedError("push: `packed` must be an object with names of tables.")
    fields = {"kind": STRING, "rows": COUNT, "dim": COUNT, "entries": COUNT}
    facts = rows(list(named.values()), "packed", fields, most=len(Table))
    return tuple(
        PackedDelta(Table(table), kind, n, dim, entries, message.array(f"{table}.packed", "u1", 1))
        for table, (kind, n, dim, entries) in zip(named, facts, strict=True)
    )


def _counts(message: Message) -> BlockCounts:
    words, ids = message.text("words"), message.array("counted", "i8", 1)
    counts = message.array("counts", "i8", 1)
    groups = _groups(message.header.get("groups", []))
    ends = [0, *(group.stop for group in groups)]
    fewer = _fewer(message, counts)
    if {len(ids), len(counts), len(fewer)} != {ends[-1]} or ends != sorted(ends):
        raise RefusedError("push: the columns of the word counts differ in length.")
    if int((ids < 0).sum()) != len(words) or (len(ids) and int(ids.min()) < -1):
        raise RefusedError("push: every word that is counted has an id, or -1 and its name.")
    if len(counts) and int(counts.min()) < 1:
        raise RefusedError("push: a word count below 1.")
    columns = [counts]
    for few in fewer.T:
        if bool(np.any(few < 0)) or bool(np.any(few > columns[-1])):
            raise RefusedError(
                "push: a word is in fewer than 0 documents or in more than it has occurrences, or "
                "these are by more authors."
            )
        columns.append(columns[-1] - few)
    occurrences, documents, voices, authors = columns
    return BlockCounts(groups, ids, words, occurrences, documents, authors, voices)


def _fewer(message: Message, counts: IntArray) -> IntArray:
    """int64 [n, 3]: by how much documents are fewer than occurrences, voices than documents, and
    authors than voices. Nodes of before 2026-11-27 send the first alone and know no author.
    """
    given = message.arrays.get("repeats")
    if given is None or given.ndim != 1:
        found: IntArray = message.array("repeats", "i8", 2)
        return found if found.shape[1] == 3 else found[:0]
    repeats: IntArray = message.array("repeats", "i8", 1)
    if len(repeats) != len(counts):
        return np.empty((len(repeats), 3), dtype=np.int64)
    return np.stack([repeats, 0 * repeats, counts - repeats], axis=1)


def _groups(found: object) -> tuple[CountGroup, ...]:
    fields = {"source": STRING, "window": INTEGER, "stop": INTEGER}
    return tuple(CountGroup(*row) for row in rows(found, "groups", fields, most=_MOST_GROUPS))


def _progress(found: object) -> tuple[SourceProgress, ...]:
    fields = {
        "source": STRING,
        "documents": COUNT,
        "tokens": COUNT,
        "published": FINITE,
        "window": INTEGER,
        "lags": FINITES,
    }
    return tuple(
        SourceProgress(source, documents, tokens, float(published), window, tuple(lags))
        for source, documents, tokens, published, window, lags in rows(
            found, "progress", fields, most=_MOST_GROUPS
        )
    )


def encode_pull(request: PullRequest, dtype: str = "float32") -> Message:
    """A pull as a message, its rows to be answered as `dtype`; all pairs have as many negatives."""
    arrays: dict[str, Array] = {
        "vectors": np.asarray(request.vectors, dtype=np.int64),
        "contexts": np.asarray(request.contexts, dtype=np.int64),
    }
    if request.grams is not None:
        arrays["grams"] = np.asarray(request.grams, dtype=np.int64)
    score = request.score
    header: dict[str, Any] = {"op": "pull", "clock": request.clock, "rows": dtype}
    if score:
        header["score"] = [[pairs.source, len(pairs.centres)] for pairs in score]
        for name in _SCORED:
            arrays[f"score.{name}"] = np.concatenate([getattr(pairs, name) for pairs in score])
    return Message(header, arrays)


def decode_pull(message: Message) -> PullRequest:
    """Inverse of `encode_pull`."""
    score = _score(message) if "score" in message.header else ()
    clock = whole(message.header, "clock")
    return PullRequest.of(decode_row_ids(message), clock, score)


def _score(message: Message) -> tuple[ScorePairs, ...]:
    """Pairs to score, source by source; a source may come more than once."""
    fields = {"source": STRING, "pairs": POSITIVE_COUNT}
    named = rows(message.header["score"], "score", fields, most=_MOST_GROUPS, of="pull")
    columns = [
        message.array(f"score.{name}", "i8", 2 if name == "negatives" else 1) for name in _SCORED
    ]
    ends = list(accumulate((n for _, n in named), initial=0))
    if {len(column) for column in columns} != {ends[-1]}:
        raise RefusedError("pull: the columns of the pairs to score differ in length.")
    windows = columns[_SCORED.index("windows")]
    if len(windows) and not -(2**40) < int(windows.min()) <= int(windows.max()) < 2**40:
        raise RefusedError("pull: a window of the pairs to score is out of all time.")
    return tuple(
        ScorePairs(source, *(column[start : start + n] for column in columns))
        for (source, n), start in zip(named, ends, strict=False)
    )


def decode_row_ids(message: Message) -> dict[Table, IntArray]:
    """The ids that a pull names, by table; n-gram buckets only where it asks for some."""
    found = {Table.IN: message.array("vectors", "i8", 1)}
    found[Table.OUT] = message.array("contexts", "i8", 1)
    if "grams" in message.arrays:
        found[Table.SUB] = message.array("grams", "i8", 1)
    return found


def encode_vocabulary(delta: VocabularyDelta) -> Message:
    """A vocabulary delta as a message; counts that are whole travel as such, in fewer bytes."""
    counts = delta.alive_counts
    whole_counts = counts.astype(np.int64)
    return Message(
        {"status": "ok", "version": delta.version},
        {
            "ids": delta.ids,
            "counts": delta.counts,
            "evicted": delta.evicted,
            "alive": delta.alive,
            "alive_counts": whole_counts if np.array_equal(whole_counts, counts) else counts,
        },
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
        alive=message.array("alive", "i8", 1),
        alive_counts=message.array("alive_counts", "f8 i8", 1).astype(np.float64),
    )


def acknowledged(answer: Message) -> Ack:
    """The answer to a push, read."""
    header = answer.header
    return Ack(
        sequence=whole(header, "sequence"),
        durable=whole(header, "durable"),
        clock=whole(header, "clock"),
        duplicate=bool(header.get("duplicate", False)),
        ahead=bool(header.get("ahead", False)),
        active=whole(header, "active"),
        pace=Pace.from_dict(header["pace"]) if "pace" in header else EVERY_BLOCK,
        share=positive(header.get("share", 1.0), "share"),
    )
