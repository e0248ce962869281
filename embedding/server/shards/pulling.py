"""Rows of a shard for a node that pulls: whole, those that it lacks, or what changed of them."""

from __future__ import annotations

from embedding.exchange.codec import decode_grams
from embedding.exchange.mirror import Wanted
from embedding.exchange.protocol import PulledRows
from embedding.exchange.rowcache import CachedRows
from embedding.exchange.wire import Message
from embedding.kernel.records import Table
from embedding.server.flight.keeping import answered, lacking
from embedding.server.flight.mirroring import StreamMirror
from embedding.server.limits import check_rows
from embedding.server.rowstore.interface import LogPosition
from embedding.server.shards.state import ShardState


def answer_pull(
    state: ShardState, node: str, message: Message, at: LogPosition, mirror: StreamMirror
) -> Message:
    """The rows that a node asks for at `at` or later; NotReachedError.

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
        state.reach(at)
        slots = {table: state.held.slots(table, ids, "pull") for table, ids in asked.items()}
        found = {table: state.tables.gather(table, where) for table, where in slots.items()}
        state.meters.rows_out += sum(map(len, slots.values()))
        sequence = state.inbox.ledger.of(node).applied
        versions, lacks = None, {}
        if kept is not None:
            held, incarnation = state.tables.versions, (state.epoch, sequence)
            versions = held.start()
            lacks = lacking(held, state.meters, node, incarnation, kept, slots)
    as_sent, half = state.tables.device.as_sent, half and wanted is None
    sent = {table: as_sent(each, half) for table, each in found.items()}
    rows = PulledRows(0, sent[Table.IN], sent[Table.OUT], sequence, grams=sent.get(Table.SUB))
    header = {"status": "ok", "clock": 0, "sequence": sequence, "versions": versions}
    return answered(header, asked, rows, lacks, mirror, wanted)
