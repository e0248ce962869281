"""What a group that follows tells the leader of one stretch of time, as one numbered entry.

    piece, piece, …   rows, so many that each message stays small; nothing is applied yet
    merge             the last rows, and what each node of the group has read: now all is applied

Where that last message is too large it comes in pieces as well, as bytes.

For each node there is one part, put together from all its pushes of that time: the leader books
the node's last sequence number and its place along with the rows. So whoever takes over from a
group that died learns from the leader how far each node's pushes are in the merged tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.payload import BlockCounts, ByteArray, CountGroup, HandIn, RowDelta, summed
from embedding.exchange.protocol import Push
from embedding.exchange.wire import (
    MESSAGE_SCHEMA,
    SLOTS,
    Array,
    Message,
    contents,
    decode,
    encode,
    slot,
    whole,
)
from embedding.kernel.errors import RefusedError
from embedding.kernel.fields import MOMENT, Column, Entries, RealNumber, String, WholeNumber
from embedding.kernel.records import COUNT_COLUMNS, SourceProgress, Table


def cut(message: Message, most_bytes: int) -> tuple[list[int], list[Array]] | None:
    """Bytes of its header and of each slot, and all of them in pieces uint8 of `most_bytes`.

    None where it fits as it is.
    """
    batch, header = encode(message)
    if batch.nbytes + len(header) <= most_bytes:
        return None
    parts = [memoryview(header), *contents(batch)]
    data = np.concatenate([np.frombuffer(part, dtype=np.uint8) for part in parts])
    pieces = [data[at : at + most_bytes] for at in range(0, len(data), most_bytes)]
    return [part.nbytes for part in parts], pieces


def whole_again(sizes: object, pieces: Sequence[Array]) -> Message:
    """Inverse of `cut`; RefusedError when the pieces do not make up a message."""
    if not isinstance(sizes, list) or len(sizes) != SLOTS + 1:
        raise RefusedError(f"message: `held` must be a list of {SLOTS + 1} sizes.")
    if any(type(size) is not int or size < 0 for size in sizes):
        raise RefusedError("message: a size in `held` is no whole number.")
    data = np.concatenate([np.empty(0, dtype=np.uint8), *pieces])
    if sum(sizes) != len(data):
        raise RefusedError(f"message: {len(data)} bytes in pieces, not {sum(sizes)}.")
    header, *slots = (pa.py_buffer(part) for part in _split(data, sizes))
    columns = [slot(part, part.size) for part in slots]
    return decode(pa.RecordBatch.from_arrays(columns, schema=MESSAGE_SCHEMA), header)


def _split(data: Array, sizes: Sequence[int]) -> Iterator[Array]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size


MERGE, PIECE = "merge", "piece"
_MOST_LAGS = 4096
"""Lags of documents of one source that an entry tells of; the latest are kept."""

WindowScore = tuple[
    str,
    Annotated[int, MOMENT],
    Annotated[float, RealNumber(0, 1e15)],
    Annotated[int, WholeNumber(1)],
]
"""Source, start of the window (Unix seconds), sum of losses and number of pairs scored in it."""


@dataclass(frozen=True)
class GroupEntry:
    """One stretch of time of a group.

    node      name of the group; sequence 1, 2, 3, … by group, without a gap
    pushes    one for each node that pushed, without rows: everything since the last entry
    after     for each part the sequence number that its node was at before
    rows      how far rows moved, in the shares that the leader adds
    digests   of the tokenizers that were used; scored: losses before learning
    """

    op: ClassVar = MERGE

    node: str
    sequence: Annotated[int, WholeNumber(1)]
    pushes: Annotated[tuple[Push, ...], Entries(4096, least=1)]
    after: tuple[int, ...]
    rows: tuple[RowDelta, ...] = ()
    digests: Annotated[tuple[Annotated[str, String(200)], ...], Entries(1000)] = ()
    scored: tuple[WindowScore, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of rows and sums, as they are sent."""
        rows = sum(delta.ids.nbytes + delta.values.nbytes for delta in self.rows)
        return rows + sum(part.nbytes for part in self.pushes)


@dataclass(frozen=True)
class EntryPiece:
    """Rows of an entry, or bytes of its end (uint8), whose last message is yet to come."""

    op: ClassVar = PIECE

    sequence: Annotated[int, WholeNumber(1)]
    piece: int
    rows: tuple[RowDelta, ...] = ()
    data: Annotated[ByteArray, Column("u1", ("bytes",))] = field(
        default_factory=lambda: np.empty(0, dtype=np.uint8)
    )


@dataclass
class Pieces:
    """What of an entry has come so far; `sequence` is the entry's, `data` bytes of its end."""

    sequence: int = 0
    rows: list[RowDelta] = field(default_factory=list)
    data: list[Array] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.rows) + len(self.data)

    def begin(self, sequence: int = 0) -> None:
        """Forget all; those of an entry come."""
        self.sequence, self.rows, self.data = sequence, [], []


def encode_entry(entry: GroupEntry, most_bytes: int) -> Iterator[Message]:
    """The messages of an entry, each of at most `most_bytes` and a header for them."""
    pieces = list(_pieces(entry.rows, most_bytes))
    yield from _first(pieces, entry.sequence)
    rare = summed([part.rare for part in entry.pushes if part.rare is not None])
    first, *others = (replace(part, deltas=(), rare=None) for part in entry.pushes)
    parts = (replace(first, rare=rare), *others)
    last = replace(entry, pushes=parts, rows=tuple(pieces[-1:]))
    message = to_message(last, pieces=max(0, len(pieces) - 1))
    in_bytes = cut(message, most_bytes)
    if in_bytes is None:
        yield message
        return
    sizes, data = in_bytes
    for number, piece in enumerate(data, max(0, len(pieces) - 1)):
        yield to_message(EntryPiece(entry.sequence, number, data=piece))
    yield Message({"op": MERGE, "sequence": entry.sequence, "held": sizes})


def encode_rows(part: Push, most_bytes: int) -> list[Message]:
    """What a shard gets of an entry: its rows as a push, after pieces of at most `most_bytes`."""
    pieces = list(_pieces(part.deltas, most_bytes))
    last = to_message(replace(part, deltas=tuple(pieces[-1:])))
    header = {**last.header, "pieces": max(0, len(pieces) - 1)}
    return [*_first(pieces, part.sequence), Message(header, last.arrays, last.texts)]


def _first(pieces: Sequence[RowDelta], sequence: int) -> Iterator[Message]:
    """All pieces but the last, which goes with what ends the entry."""
    for number, delta in enumerate(pieces[:-1]):
        yield to_message(EntryPiece(sequence, number, (delta,)))


def decode_piece(
    message: Message, pieces: Pieces, *, dim: int, most_rows: int, most_bytes: int = 0
) -> None:
    """Lay a piece's rows, of `dim` columns, or bytes of the entry's end, to those before it.

    The first of an entry forgets all before. RefusedError when there are more than `most_rows`
    rows, of which a piece without any counts as one, or more than `most_bytes`.
    """
    piece = from_message(EntryPiece, message)
    sequence, number = piece.sequence, piece.piece
    if number == 0:
        pieces.begin(sequence)
    if (sequence, number) != (pieces.sequence, pieces.count):
        raise RefusedError(
            f"{PIECE}: piece {number} of entry {sequence}; {pieces.count} of entry "
            f"{pieces.sequence} is the next.",
            kind="sequence",
        )
    for delta in piece.rows:
        if delta.values.shape != (len(delta.ids), dim):
            raise RefusedError(
                f"{PIECE}: values of shape {delta.values.shape}; {(len(delta.ids), dim)} is "
                "accepted.",
                kind="shape",
            )
    pieces.rows.extend(piece.rows)
    if not piece.rows:
        pieces.data.append(piece.data)
        size = sum(max(1, piece.nbytes) for piece in pieces.data)
        if size > most_bytes:
            pieces.begin()
            raise RefusedError(f"{PIECE}: {size} bytes; at most {most_bytes} are accepted.")
    held = sum(max(1, len(piece.ids)) for piece in pieces.rows)
    if held > most_rows:
        pieces.begin()
        raise RefusedError(f"{PIECE}: {held} rows; at most {most_rows} can have moved.")


def decode_entry(message: Message, node: str, pieces: Pieces) -> GroupEntry:
    """The entry that ends with this message; RefusedError says what is wrong with it."""
    if "held" in message.header:
        message = whole_again(message.header["held"], pieces.data)
    entry = from_message(GroupEntry, message)
    parts, after = entry.pushes, entry.after
    if len(after) != len(parts):
        raise RefusedError(f"{MERGE}: `after` must be a list of {len(parts)} numbers.")
    if any(part.sequence <= old for part, old in zip(parts, after, strict=True)):
        raise RefusedError(f"{MERGE}: a part whose sequence number is not above `after`.")
    if len({part.node for part in parts}) < len(parts):
        raise RefusedError(f"{MERGE}: a node is named twice.")
    moved = completed(pieces, entry.sequence, whole(message.header, "pieces"), entry.rows)
    return replace(entry, node=node, rows=moved)


def completed(
    pieces: Pieces, sequence: int, expected: int, last: Sequence[RowDelta]
) -> tuple[RowDelta, ...]:
    """All rows of an entry, one delta a table; RefusedError when pieces of it are missing."""
    held = pieces.rows if pieces.sequence == sequence else []
    if len(held) != expected:
        raise RefusedError(
            f"{MERGE}: {len(held)} pieces of entry {sequence} came before it, not {expected}.",
            kind="sequence",
        )
    pieces.begin()
    return _joined([*held, *last])


def _pieces(rows: Sequence[RowDelta], most_bytes: int) -> Iterator[RowDelta]:
    for delta in rows:
        size = delta.ids.itemsize + delta.values.itemsize * delta.values.shape[1]
        step = max(1, most_bytes // size)
        for at in range(0, len(delta.ids), step):
            cut = slice(at, at + step)
            yield RowDelta(delta.table, delta.ids[cut], delta.values[cut])


def _joined(pieces: Sequence[RowDelta]) -> tuple[RowDelta, ...]:
    """One delta a table; RefusedError when the pieces of a table do not go together."""
    found = []
    for table in Table:
        own = [piece for piece in pieces if piece.table is table]
        if not own:
            continue
        if len({(p.values.dtype, p.values.shape[1]) for p in own}) > 1:
            raise RefusedError(f"{MERGE}: pieces of table {table} of several shapes or types.")
        ids = np.concatenate([piece.ids for piece in own])
        found.append(RowDelta(table, ids, np.concatenate([piece.values for piece in own])))
    return tuple(found)


def merged(pushes: Sequence[Push]) -> Push:
    """Successive pushes of one node as one, without rows: counts and sums added up."""
    last = pushes[-1]
    if len(pushes) == 1:
        return replace(last, deltas=(), packed=(), keeps=False)
    counts, hand_ins = _merged_counts(pushes), _merged_hand_ins(pushes)
    return Push(
        last.node,
        last.sequence,
        last.clock,
        counts=counts,
        progress=_merged_progress(pushes),
        tokens=sum(push.tokens for push in pushes),
        loss_sum=sum(push.loss_sum for push in pushes),
        pairs=sum(push.pairs for push in pushes),
        tokenizer_digest=last.tokenizer_digest,
        offset=last.offset,
        busy_s=sum(push.busy_s for push in pushes),
        rare=summed([push.rare for push in pushes if push.rare is not None]),
        usage=tuple(
            part
            for push in pushes
            for part in push.usage
            if part.window not in hand_ins or push.sequence >= hand_ins[part.window].first
        ),
        shifts=tuple(each for push in pushes for each in push.shifts),
        hand_ins=tuple(hand_ins.values()),
        incarnation=last.incarnation,
        phrases=tuple(each for push in pushes for each in push.phrases),
    )


def _merged_progress(pushes: Sequence[Push]) -> tuple[SourceProgress, ...]:
    found: dict[tuple[str, int], SourceProgress] = {}
    for push in pushes:
        for each in push.progress:
            key = (each.source, each.window)
            held = found.get(key)
            if held is not None:
                each = SourceProgress(
                    each.source,
                    held.documents + each.documents,
                    held.tokens + each.tokens,
                    max(held.published, each.published),
                    each.window,
                    (*held.lags, *each.lags)[-_MOST_LAGS:],
                )
            found[key] = each
    return tuple(found.values())


def _merged_hand_ins(pushes: Sequence[Push]) -> dict[int, HandIn]:
    """The last of each window; none where text of it was pushed after."""
    found: dict[int, HandIn] = {}
    for push in pushes:
        for each in push.progress:
            found.pop(each.window, None)
        found.update({one.window: one for one in push.hand_ins})
    return found


def _merged_counts(pushes: Sequence[Push]) -> BlockCounts:
    """Each word of a source and window once: known ones by id, the others by name."""
    groups: dict[tuple[str, int], int] = {}
    names: dict[str, int] = {}
    none = np.empty(0, dtype=np.int64)
    owners, codes = [none], [none]
    for counts in (push.counts for push in pushes):
        words = counts.words.to_pylist() if isinstance(counts.words, pa.Array) else counts.words
        code = counts.ids.copy()
        code[code < 0] = [-1 - names.setdefault(word, len(names)) for word in words]
        codes.append(code)
        own = [groups.setdefault((each.source, each.window), len(groups)) for each in counts.groups]
        stops = np.array([each.stop for each in counts.groups], dtype=np.int64)
        owners.append(np.repeat(np.array(own, dtype=np.int64), np.diff(stops, prepend=0)))
    owner, code = np.concatenate(owners), np.concatenate(codes)
    least = int(code.min(initial=0))
    span = int(code.max(initial=0)) - least + 1
    keys, at = np.unique(owner * span + (code - least), return_inverse=True)
    columns = np.zeros((len(COUNT_COLUMNS), len(keys)), dtype=np.int64)
    for number, column in enumerate(columns):
        parts = [push.counts.columns[number] for push in pushes]
        np.add.at(column, at, np.concatenate([none, *parts]))
    code, known = keys % span + least, list(names)
    stops = np.cumsum(np.bincount(keys // span, minlength=len(groups)))
    return BlockCounts(
        tuple(CountGroup(*key, stop) for key, stop in zip(groups, stops.tolist(), strict=True)),
        np.maximum(code, -1),
        [known[-1 - each] for each in code[code < 0].tolist()],
        *columns,
    )
