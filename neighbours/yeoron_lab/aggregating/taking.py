"""What a server and its shards do with the pushes of a group of nodes."""

from __future__ import annotations

from embedding.exchange.codec import decode_push
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.server.flight.shell import of_kind
from embedding.server.shards.log import Key
from embedding.server.shards.state import ShardState
from embedding.server.state import ServerState
from yeoron_lab.together import decode_together


def taken(state: ServerState, message: Message) -> Message:
    """Pushes of a group, with their rows added up where the server has rows."""
    with of_kind("message"):
        pushes, sessions = decode_together(message)
    acks = state.push_together(pushes, sessions)
    return Message({"status": "ok", "acks": [ack.to_dict() for ack in acks]})


def taken_by_shard(state: ShardState, message: Message) -> Message:
    """The rows of a group, added up."""
    key = check_tickets(message.header.get("tickets"))
    state.push_together(key, decode_push(message))
    return Message({"status": "ok"})


def check_tickets(given: object) -> Key:
    """The pushes that a sum is of; RefusedError unless they are of different nodes."""
    named = given if isinstance(given, list) else []
    pairs = [each for each in named if isinstance(each, list)]
    whole = [each for each in pairs if [type(part) for part in each] == [str, int]]
    if not whole or len({node for node, _ in whole}) < len(named):
        raise RefusedError("together: `tickets` must be [node, sequence] of different nodes.")
    return tuple((node, sequence) for node, sequence in whole)
