"""What messages to shards have in common: a table, a place in the primary's log."""

from __future__ import annotations

from embedding.exchange.headers import position, string
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.server.rowstore.interface import LogPosition


def at_of(message: Message) -> LogPosition:
    """The place up to which the sender has read the log; RefusedError when it is missing."""
    at = position(message.header.get("at"))
    if at is None:
        raise RefusedError("message: 'at' is missing.")
    return at


def table_of(message: Message) -> Table:
    """The table that is meant; RefusedError for another."""
    try:
        return Table(string(message.header, "table"))
    except ValueError as error:
        raise RefusedError("`table`: in, out or sub is accepted.") from error
