"""Rows of a shard for a node that pulls: whole, those that it lacks, or what changed of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from embedding.exchange.codec import decode_grams
from embedding.exchange.mirror import Wanted
from embedding.exchange.protocol import PulledRows
from embedding.exchange.rowcache import NAMES, CachedRows
from embedding.exchange.wire import Array, Message
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.server.flight.limits import check_rows
from embedding.server.flight.mirroring import StreamMirror
from embedding.server.rowstore.interface import LogPosition
from embedding.server.shards.fields import not_yet
from embedding.server.shards.state import ShardState

Read = dict[Table, FloatArray | HalfArray]


def answer_pull(
    state: ShardState, node: str, message: Message, at: LogPosition, mirror: StreamMirror
) -> Message:
    """The rows that a node asks for at `at` or later, or that they are not there yet.

    mirror  what the node at the other end of the stream has, where it asks for changes
    """
    vectors, contexts = message.array("vectors", "i8", 1), message.array("contexts", "i8", 1)
    asked = {Table.IN: vectors, Table.OUT: contexts}
    grams = decode_grams(message)
    if grams is not None:
        asked[Table.SUB] = grams
    half = message.header.get("rows") == "float16"
    most = state.spec.server.max_message_bytes
    check_rows(sum(map(len, asked.values())), state.spec.dim, most, half=half)
    kept, wanted = CachedRows.read(message, asked), Wanted.read(message.header)
    with state.changed:
        if not state.reach(at):
            return not_yet(state)
        slots = {table: state.held.slots(ids, "pull", table) for table, ids in asked.items()}
        found = {table: state.tables.gather(table, where) for table, where in slots.items()}
        state.meters.rows_out += sum(map(len, slots.values()))
        sequence = state.inbox.ledger.of(node).applied
        versions = None if kept is None else state.tables.versions.start()
        known = kept is not None and (kept.epoch, kept.sequence) == (state.epoch, sequence)
        lacks = _lacks(state, node, kept, slots) if kept is not None and known else {}
    as_sent, half = state.tables.device.as_sent, half and wanted is None
    rows = {table: as_sent(each, half) for table, each in found.items()}
    header = {"status": "ok", "clock": 0, "sequence": sequence, "versions": versions}
    if wanted is not None:
        held = PulledRows(0, rows[Table.IN], rows[Table.OUT], sequence, grams=rows.get(Table.SUB))
        changes = mirror.changes(wanted, asked, held)
        if changes is not None:
            return Message({**header, **changes[0]}, changes[1])
    arrays: dict[str, Array] = {}
    for table, values in rows.items():
        arrays[NAMES[table]] = values[lacks[table]] if lacks else values
        if lacks:
            arrays[f"{NAMES[table]}.sent"] = np.packbits(lacks[table])
    return Message(header, arrays)


def _lacks(
    state: ShardState, node: str, kept: CachedRows, slots: Mapping[Table, IntArray]
) -> dict[Table, Array]:
    """By table bool [n]: which rows the node has not got as they are (under the lock)."""
    found: dict[Table, Array] = {}
    for table, where in slots.items():
        found[table] = state.tables.versions.unknown(node, table, where, kept.since[table])
        state.meters.rows_spared += len(where) - int(found[table].sum())
    return found
