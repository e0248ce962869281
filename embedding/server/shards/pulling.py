"""Rows of a shard for a node that pulls."""

from __future__ import annotations

from embedding.exchange.codec import decode_row_ids
from embedding.exchange.wire import Message
from embedding.server.flight.mirroring import StreamMirror
from embedding.server.flight.rowanswer import RowAnswer
from embedding.server.rowstore.interface import LogPosition
from embedding.server.shards.state import ShardState


def answer_pull(
    state: ShardState, node: str, message: Message, at: LogPosition, mirror: StreamMirror
) -> Message:
    """The rows that a node asks for at `at` or later; NotReachedError.

    mirror  what the node at the other end of the stream has, where it asks for changes
    """
    ids, most_bytes = decode_row_ids(message), state.spec.server.max_message_bytes
    answer = RowAnswer.to(message, ids, state.spec.dim, most_bytes)
    with state.changed:
        state.reach(at)
        slots = {table: state.held.slots(table, each, "pull") for table, each in ids.items()}
        found = {table: state.tables.gather(table, where) for table, where in slots.items()}
        state.meters.rows_out += sum(map(len, slots.values()))
        sequence = state.inbox.ledger.of(node).applied
        spared = answer.spared(
            state.tables.versions, state.meters, lambda: slots, node, (state.epoch, sequence)
        )
    as_sent = state.tables.device.as_sent
    rows = {table: as_sent(each, answer.half) for table, each in found.items()}
    return answer.message({"clock": 0}, rows, sequence, spared, mirror)
