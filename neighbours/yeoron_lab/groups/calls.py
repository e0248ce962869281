"""What a group that follows may ask on its stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import Any

from embedding.exchange.codec import to_message
from embedding.exchange.wire import Message, whole
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.server.figures.reports import is_number
from embedding.server.flight.shell import Call, Who
from embedding.server.state import ServerState
from embedding.server.validation import check_nodes, check_report, check_rows
from yeoron_lab.groups.entry import MERGE, PIECE, Pieces, decode_entry
from yeoron_lab.groups.leading import LedGroups
from yeoron_lab.shards.log import string

MOST_NODES = 10_000
"""Nodes that one group may tell of."""
MOST_MESSAGES = 8
"""Largest messages that what was read may take together."""


class GroupCalls:
    """The calls of one stream.

    asks  what a node is asked to hand in
    who   which group greeted on it
    """

    def __init__(
        self, groups: LedGroups, state: ServerState, asks: Callable[[str], list[Any]], who: Who
    ) -> None:
        self._asks = asks
        self._groups = groups
        self._state = state
        self._who = who
        self._pieces = Pieces()

    def calls(self) -> dict[str, Call]:
        return {
            PIECE: self._piece,
            MERGE: self._merge,
            "changes": self._changes,
            "rows": self._rows,
        }

    def _piece(self, message: Message) -> Message:
        """Bytes of an entry whose end is yet to come."""
        state, tables = self._state, self._state.tables
        # Twice as many rows as there are here: the group may not have heard yet which were evicted.
        rows = 4 * state.vocabulary.rows + tables.buckets + 1
        most_bytes = MOST_MESSAGES * state.config.max_message_bytes + rows * (4 * tables.dim + 8)
        return self._pieces.add(message, most_bytes)

    def _merge(self, message: Message) -> Message:
        group, session = self._who()
        entry = decode_entry(self._pieces.whole(message), group)
        check_nodes(self._state.ledger.nodes, [part.node for part in entry.pushes])
        ack = self._groups.merge(group, session, entry)
        return to_message(ack, status="ok")

    def _changes(self, message: Message) -> Message:
        group, _ = self._who()
        header, about = message.header, _checked_about(self._state, message.header.get("told"))
        seen = whole(header, "seen", least=-1)
        changes = self._groups.changes(group, seen, whole(header, "epoch"), about)
        asks = {name: self._asks(name) for name in about.get("nodes", {})}
        return to_message(replace(changes, asks=asks), status="ok")

    def _rows(self, message: Message) -> Message:
        group, _ = self._who()
        if group not in self._groups.groups:
            raise RefusedError("rows: `changes` comes first, by which a group is known.")
        ids = message.array("ids", "i8", 1)
        half = message.header.get("rows") == "float16"
        try:
            table = Table(string(message.header, "table"))
        except ValueError as error:
            raise RefusedError("rows: `table` must be in, out or sub.") from error
        state = self._state
        check_rows(len(ids), state.dim, state.config.max_message_bytes, half=half)
        with state.lock:
            slots = state.rows.slots(table, ids, "rows")
            rows = state.tables.device.as_sent(state.tables.gather(table, slots), half)
            self._groups.sent(group, len(ids))
        return Message({"status": "ok"}, {"rows": rows})


def _checked_about(state: ServerState, about: object) -> dict[str, Any]:
    """What a group says of itself and its nodes; RefusedError when it cannot be shown."""
    nodes = about.get("nodes", {}) if isinstance(about, dict) else None
    if not isinstance(about, dict) or not isinstance(nodes, dict) or len(nodes) > MOST_NODES:
        raise RefusedError(f"changes: `told` must be an object of at most {MOST_NODES} nodes.")
    check_nodes(state.reports.last, nodes)
    check_nodes(state.machine.board.members, nodes)
    for name, node in nodes.items():
        report = node.get("report", {}) if isinstance(node, dict) else None
        if not isinstance(report, dict):
            raise RefusedError(f"changes: node {name} must be an object, and its `report` too.")
        check_report(name, report, state.accounts.tracker.sources)
    departed = about.get("departed", [])
    if not isinstance(departed, list) or not all(type(node) is str for node in departed):
        raise RefusedError("changes: `departed` must be a list of names of nodes.")
    figures = about.get("figures", {})
    if not isinstance(figures, dict) or not all(map(_figure, figures.values())):
        raise RefusedError("changes: `figures` must be an object of numbers.")
    age = about.get("age_s", 0)
    if not _figure(age) or not 0 <= age < 1e9:
        raise RefusedError("changes: `age_s` must be seconds, not below 0.")
    return about


def _figure(value: object) -> bool:
    return is_number(value) and isfinite(value)
