"""Pushes of several nodes as one message: their deltas added up, everything else by node.

The server books the sequence number of every node with the rows, in one step. So it does not
matter what becomes of whoever added them up: a node that has heard nothing sends its own push
again, to the server itself, and the server knows whether it has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import RowDelta, WordContexts, summed
from embedding.exchange.protocol import Push
from embedding.exchange.relay import TOGETHER
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.fields import Entries
from embedding.kernel.records import IntArray, Table


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


@dataclass(frozen=True)
class PushesTogether:
    """Pushes of different nodes.

    deltas, rare  of all of them, added up
    sessions      of each node's own stream: a process that was replaced adds nothing by this way
    """

    op: ClassVar = TOGETHER

    pushes: Annotated[tuple[Push, ...], Entries(4096, least=1)]
    sessions: tuple[int, ...]
    deltas: tuple[RowDelta, ...] = ()
    rare: WordContexts | None = None


def encode_together(pushes: Sequence[Push], sessions: Sequence[int]) -> Message:
    """Pushes of different nodes as one message, their rows added up."""
    rare = summed([push.rare for push in pushes if push.rare is not None])
    plain = tuple(replace(push, deltas=(), rare=None) for push in pushes)
    return to_message(PushesTogether(plain, tuple(sessions), add_up(pushes), rare))


def decode_together(message: Message) -> tuple[list[Push], list[int]]:
    """The pushes, the first of them with all rows, and their sessions; RefusedError otherwise."""
    found = from_message(PushesTogether, message)
    if len(found.sessions) != len(found.pushes):
        raise RefusedError(f"{TOGETHER}: `sessions` must be a list of {len(found.pushes)} numbers.")
    if len({push.node for push in found.pushes}) < len(found.pushes):
        raise RefusedError(f"{TOGETHER}: a node is named twice.")
    first = replace(found.pushes[0], deltas=found.deltas, rare=found.rare)
    return [first, *found.pushes[1:]], list(found.sessions)
