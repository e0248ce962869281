"""Pushes of several nodes as one message: their deltas added up, everything else by node.

The server books the sequence number of every node with the rows, in one step. So it does not
matter what becomes of whoever added them up: a node that has heard nothing sends its own push
again, to the server itself, and the server knows whether it has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from embedding.exchange.codec import SHIFTS, USED, decode_push, encode_push, word_context_arrays
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.headers import whole
from embedding.exchange.payload import RowDelta, summed
from embedding.exchange.protocol import Push
from embedding.exchange.relay import TOGETHER
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, Table

_MOST = 4096
"""Nodes of which one message brings pushes."""
OFFSETS = "places"
_COLUMNS = ("counted", "counts", "repeats")
_BESIDE = {"used": USED, "shifted": SHIFTS[:1], "pulled": SHIFTS[1:]}
"""Columns that only some pushes have, by the name of their lengths in the header."""


def add_up(pushes: Sequence[Push]) -> tuple[RowDelta, ...]:
    """The sum of the pushes' deltas, by table; float16 when all of them are, else float32."""
    found = []
    for table in Table:
        deltas = [delta for push in pushes for delta in push.deltas if delta.table is table]
        if deltas:
            found.append(_sum(table, deltas))
    return tuple(found)


def _sum(table: Table, deltas: Sequence[RowDelta]) -> RowDelta:
    if len(deltas) == 1:
        return deltas[0]
    ids: IntArray = np.unique(np.concatenate([delta.ids for delta in deltas]))
    values = np.zeros((len(ids), deltas[0].values.shape[1]), dtype=np.float32)
    for delta in deltas:
        values[np.searchsorted(ids, delta.ids)] += widen(delta.values)
    half = all(delta.values.dtype == np.float16 for delta in deltas)
    return RowDelta(table, ids, narrow(values) if half else values)


def encode_together(pushes: Sequence[Push], sessions: Sequence[int]) -> Message:
    """Pushes of different nodes as one message.

    sessions  of each node's own stream: a process that was replaced adds nothing by this way
    """
    plain = [encode_push(replace(push, deltas=(), rare=None, offset="")) for push in pushes]
    arrays: dict[str, Array] = {}
    for delta in add_up(pushes):
        arrays[f"{delta.table}.ids"] = np.asarray(delta.ids, dtype=np.int64)
        arrays[f"{delta.table}.values"] = delta.values
    rare = summed([push.rare for push in pushes if push.rare is not None])
    if rare is not None:
        arrays |= word_context_arrays(rare)
    for name in _COLUMNS:
        arrays[name] = np.concatenate([message.arrays[name] for message in plain])
    beside = {}
    for length, columns in _BESIDE.items():
        beside[length] = [len(message.arrays.get(columns[0], ())) for message in plain]
        for name in columns if any(beside[length]) else ():
            arrays[name] = np.concatenate([m.arrays[name] for m in plain if name in m.arrays])
    words = pa.concat_arrays([message.texts["words"] for message in plain])
    arrays[OFFSETS], sizes = joined_texts([push.offset for push in pushes])
    header = {
        "op": TOGETHER,
        "pushes": [dict(message.header) for message in plain],
        OFFSETS: sizes,
        "sessions": list(sessions),
        "counted": [len(message.arrays["counted"]) for message in plain],
        "named": [len(message.texts["words"]) for message in plain],
        **beside,
    }
    return Message(header, arrays, {"words": words})


def decode_together(message: Message) -> tuple[list[Push], list[int]]:
    """The pushes, the first of them with all rows, and their sessions; RefusedError otherwise."""
    header = message.header
    headers = header.get("pushes")
    if not isinstance(headers, list) or not 1 <= len(headers) <= _MOST:
        raise RefusedError(f"{TOGETHER}: `pushes` must be a list of 1 to {_MOST} headers.")
    if not all(isinstance(each, dict) for each in headers):
        raise RefusedError(f"{TOGETHER}: each header must be a JSON object.")
    n = len(headers)
    sessions = _whole_list(header.get("sessions"), "sessions", n)
    # Nodes of before 2026-11-27 send `repeats` without what they know of authors.
    ndim = 1 if getattr(message.arrays.get("repeats"), "ndim", 2) == 1 else 2
    columns = {
        name: message.array(name, "i8", ndim if name == "repeats" else 1) for name in _COLUMNS
    }
    ends = np.cumsum([0, *_whole_list(header.get("counted"), "counted", n)])
    words = message.text("words")
    named = np.cumsum([0, *_whole_list(header.get("named"), "named", n)])
    if any(len(each) != ends[-1] for each in columns.values()) or len(words) != named[-1]:
        raise RefusedError(f"{TOGETHER}: the columns of the word counts differ in length.")
    beside = {length: _beside(message, length, n) for length in _BESIDE}
    pushes, offsets = [], split_texts(message, OFFSETS, n)
    for i, own in enumerate(headers):
        arrays = {name: each[ends[i] : ends[i + 1]] for name, each in columns.items()}
        if i == 0:
            arrays |= {k: v for k, v in message.arrays.items() if "." in k}
        for given, stops in beside.values():
            if stops[i + 1] > stops[i]:
                arrays |= {name: each[stops[i] : stops[i + 1]] for name, each in given.items()}
        part = words.slice(named[i], named[i + 1] - named[i])
        header = {**own, "place": offsets[i]}
        pushes.append(decode_push(Message(header, arrays, {"words": part})))
    if len({push.node for push in pushes}) < n:
        raise RefusedError(f"{TOGETHER}: a node is named twice.")
    return pushes, sessions


def _beside(message: Message, length: str, n: int) -> tuple[dict[str, Array], IntArray]:
    """Columns that only some pushes have, and int64 [n + 1] where those of each push begin."""
    stops = np.cumsum([0, *_whole_list(message.header.get(length), length, n)])
    given = {name: message.arrays[name] for name in _BESIDE[length] if name in message.arrays}
    if any(len(each) != stops[-1] for each in given.values()) or bool(given) != bool(stops[-1]):
        raise RefusedError(f"{TOGETHER}: the columns of `{length}` differ in length.")
    return given, stops


def joined_texts(texts: Sequence[str]) -> tuple[Array, list[int]]:
    """Long texts as an array uint8 beside a header, which is limited, and the bytes of each."""
    data = [text.encode() for text in texts]
    return np.frombuffer(b"".join(data), dtype=np.uint8), [len(each) for each in data]


def split_texts(message: Message, name: str, n: int) -> list[str]:
    """Inverse of `joined_texts`: `n` texts in the array `name`, whose sizes the header has."""
    sizes = _whole_list(message.header.get(name), name, n)
    data = message.array(name, "u1", 1)
    ends = np.cumsum([0, *sizes])
    if ends[-1] != len(data):
        raise RefusedError(f"message: {len(data)} bytes of `{name}`, not {ends[-1]}.")
    try:
        return [data[a:b].tobytes().decode() for a, b in itertools.pairwise(ends)]
    except UnicodeDecodeError as error:
        raise RefusedError(f"message: `{name}` is not UTF-8.") from error


def _whole_list(found: object, name: str, n: int) -> list[int]:
    if not isinstance(found, list) or len(found) != n:
        raise RefusedError(f"{TOGETHER}: `{name}` must be a list of {n} numbers.")
    return [whole({name: each}, name) for each in found]
