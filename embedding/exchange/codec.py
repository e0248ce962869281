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

from embedding.exchange.headers import (
    COUNT,
    FINITE,
    FINITES,
    INTEGER,
    POSITIVE_COUNT,
    STRING,
    Accepted,
    positive,
    rows,
    string,
    whole,
)
from embedding.exchange.pace import EVERY_BLOCK, Pace
from embedding.exchange.payload import (
    BlockCounts,
    ContextShift,
    ContextSums,
    CountGroup,
    HandIn,
    Inherited,
    PackedDelta,
    RowDelta,
    WordContexts,
)
from embedding.exchange.protocol import (
    NAMES,
    Ack,
    PullRequest,
    Push,
    VocabularyDelta,
)
from embedding.exchange.wire import Array, Message, text_array
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, Phrase, ScorePairs, SourceProgress, Table

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
    fields = {"source": STRING, "window": INTEGER, "stop": INTEGER}
    named = rows(message.header.get("groups", []), "groups", fields, most=_MOST_GROUPS)
    groups = tuple(CountGroup(*row) for row in named)
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
        NAMES[table]: np.asarray(ids, dtype=np.int64) for table, ids in request.rows.items()
    }
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
    return PullRequest(decode_row_ids(message), clock, score)


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
    return {
        table: message.array(name, "i8", 1)
        for table, name in NAMES.items()
        if table is not Table.SUB or name in message.arrays
    }


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


_MOST_PHRASES = 100_000
"""Phrases that one push may name."""
_MOST_PHRASE_PARTS = 16
_LONGEST = 1_000
"""Characters of a phrase, and of a part of one."""


def phrase_header(phrases: Sequence[Phrase]) -> list[list[object]]:
    """[word, parts, since, joined, earlier] of each."""
    return [[p.word, list(p.parts), p.since, p.joined, p.earlier] for p in phrases]


def phrases_of(rows: object) -> tuple[Phrase, ...]:
    """Inverse of `phrase_header`; RefusedError for what is none."""
    if not isinstance(rows, list) or len(rows) > _MOST_PHRASES:
        raise RefusedError(f"push: `phrases` must be a list of at most {_MOST_PHRASES:,} rows.")
    return tuple(map(_phrase, rows))


def _phrase(row: object) -> Phrase:
    if not (isinstance(row, list) and len(row) == 5):
        raise RefusedError("push: a phrase is [word, parts, since, joined, earlier].")
    word, parts, since, joined, earlier = row
    if not (isinstance(parts, list) and 2 <= len(parts) <= _MOST_PHRASE_PARTS):
        raise RefusedError(f"push: a phrase has 2 to {_MOST_PHRASE_PARTS} parts.")
    if not all(isinstance(each, str) and 0 < len(each) <= _LONGEST for each in (word, *parts)):
        raise RefusedError(f"push: a phrase and its parts are words of 1 to {_LONGEST} characters.")
    if not all(type(when) in (int, float) and math.isfinite(when) for when in (since, joined)):
        raise RefusedError("push: the times of a phrase must be Unix seconds.")
    if type(earlier) is not int or not 0 <= earlier < 2**53:
        raise RefusedError("push: the earlier documents of a phrase must be a whole number.")
    return Phrase(word, tuple(parts), float(since), float(joined), earlier)


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
    figures = []
    for one in shifts:
        figures += [np.pad(one.weights[:, None], ((0, 0), (0, 2))), one.figures]
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
