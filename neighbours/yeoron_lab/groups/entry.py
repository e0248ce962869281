"""What a group that follows tells the leader of one stretch of time, as one numbered entry.

    piece, piece, …   bytes of the message that follows, where that is too large
    merge             how far rows moved, and what each node of the group has read: all is applied

For each node there is one part, put together from all its pushes of that time: the leader books
the node's last sequence number and its place along with the rows. So whoever takes over from a
group that died learns from the leader how far each node's pushes are in the merged tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.payload import BlockCounts, ByteArray, CountGroup, HandIn, RowDelta, summed
from embedding.exchange.protocol import Push
from embedding.exchange.wire import (
    MESSAGE_SCHEMA,
    SLOTS,
    Message,
    contents,
    decode,
    encode,
    slot,
)
from embedding.kernel.errors import RefusedError
from embedding.kernel.fields import MOMENT, Column, Entries, RealNumber, String, WholeNumber
from embedding.kernel.records import COUNT_COLUMNS, SourceProgress

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
    """Bytes (uint8) of an entry whose last message is yet to come."""

    op: ClassVar = PIECE

    sequence: Annotated[int, WholeNumber(1)]
    piece: int
    data: Annotated[ByteArray, Column("u1", ("bytes",))]


class Pieces:
    """Bytes of an entry that have come so far, on one stream."""

    def __init__(self) -> None:
        self._sequence, self._data = 0, list[ByteArray]()

    def add(self, message: Message, most_bytes: int) -> Message:
        """Lay a piece to those before it; the first of an entry forgets all before.

        RefusedError when together they have more than `most_bytes`.
        """
        piece = from_message(EntryPiece, message)
        if piece.piece == 0:
            self._sequence, self._data = piece.sequence, []
        if (piece.sequence, piece.piece) != (self._sequence, len(self._data)):
            raise RefusedError(
                f"{PIECE}: piece {piece.piece} of entry {piece.sequence}; {len(self._data)} of "
                f"entry {self._sequence} is the next.",
                kind="sequence",
            )
        self._data.append(piece.data)
        size = sum(max(1, len(data)) for data in self._data)
        if size > most_bytes:
            self._sequence, self._data = 0, []
            raise RefusedError(f"{PIECE}: {size} bytes; at most {most_bytes} are accepted.")
        return Message({"status": "ok"})

    def whole(self, message: Message) -> Message:
        """What a message ends: itself, or the one whose bytes came before it, which it takes.

        RefusedError when the pieces do not make up a message.
        """
        if "held" not in message.header:
            return message
        sizes, sequence = message.header["held"], message.header.get("sequence")
        pieces = self._data if sequence == self._sequence else []
        self._sequence, self._data = 0, []
        if not isinstance(sizes, list) or len(sizes) != SLOTS + 1:
            raise RefusedError(f"{MERGE}: `held` must be a list of {SLOTS + 1} sizes.")
        if any(type(size) is not int or size < 0 for size in sizes):
            raise RefusedError(f"{MERGE}: a size in `held` is no whole number.")
        data = np.concatenate([np.empty(0, dtype=np.uint8), *pieces])
        if sum(sizes) != len(data):
            raise RefusedError(
                f"{MERGE}: {len(data)} bytes of entry {sequence} came before it, not {sum(sizes)}.",
                kind="sequence",
            )
        # Copied, so that each part begins where its numbers are aligned.
        parts = [pa.py_buffer(part.copy()) for part in np.split(data, np.cumsum(sizes)[:-1])]
        columns = [slot(part, part.size) for part in parts[1:]]
        return decode(pa.RecordBatch.from_arrays(columns, schema=MESSAGE_SCHEMA), parts[0])


def in_pieces(message: Message, sequence: int, most_bytes: int) -> Iterator[Message]:
    """A message, where it is larger than `most_bytes` in pieces for `Pieces`."""
    batch, header = encode(message)
    if batch.nbytes + len(header) <= most_bytes:
        yield message
        return
    parts = [memoryview(header), *contents(batch)]
    data = np.concatenate([np.frombuffer(part, dtype=np.uint8) for part in parts])
    for number, at in enumerate(range(0, len(data), most_bytes)):
        yield to_message(EntryPiece(sequence, number, data[at : at + most_bytes]))
    sizes = [part.nbytes for part in parts]
    yield Message({"op": message.header["op"], "sequence": sequence, "held": sizes})


def encode_entry(entry: GroupEntry, most_bytes: int) -> Iterator[Message]:
    """The messages of an entry, each of at most `most_bytes` and a header for them."""
    rare = summed([part.rare for part in entry.pushes if part.rare is not None])
    first, *others = (replace(part, deltas=(), rare=None) for part in entry.pushes)
    whole = replace(entry, pushes=(replace(first, rare=rare), *others))
    return in_pieces(to_message(whole), entry.sequence, most_bytes)


def decode_entry(message: Message, node: str) -> GroupEntry:
    """The entry in a message; RefusedError says what is wrong with it."""
    entry = from_message(GroupEntry, message)
    parts, after = entry.pushes, entry.after
    if len(after) != len(parts):
        raise RefusedError(f"{MERGE}: `after` must be a list of {len(parts)} numbers.")
    if any(part.sequence <= old for part, old in zip(parts, after, strict=True)):
        raise RefusedError(f"{MERGE}: a part whose sequence number is not above `after`.")
    if len({part.node for part in parts}) < len(parts):
        raise RefusedError(f"{MERGE}: a node is named twice.")
    return replace(entry, node=node)


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
    by_window: dict[tuple[str, int], SourceProgress] = {}
    for push in pushes:
        for each in push.progress:
            key = (each.source, each.window)
            before = by_window.get(key)
            if before is not None:
                each = SourceProgress(
                    each.source,
                    before.documents + each.documents,
                    before.tokens + each.tokens,
                    max(before.published, each.published),
                    each.window,
                    (*before.lags, *each.lags)[-_MOST_LAGS:],
                )
            by_window[key] = each
    return tuple(by_window.values())


def _merged_hand_ins(pushes: Sequence[Push]) -> dict[int, HandIn]:
    """The last of each window; none where text of it was pushed after."""
    last: dict[int, HandIn] = {}
    for push in pushes:
        for each in push.progress:
            last.pop(each.window, None)
        last.update({hand_in.window: hand_in for hand_in in push.hand_ins})
    return last


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
