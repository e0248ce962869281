"""The leading group's part: it takes the entries of groups that follow, and says what changed.

An entry is applied whole or not at all, and once: it is numbered by group, and each of its parts
says which of its node's pushes it follows on. Entries wait for nobody; no policy holds them back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from embedding.exchange.codec import to_message
from embedding.exchange.protocol import Ack, Push
from embedding.exchange.wire import Message, whole
from embedding.kernel.config import part_of
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import IntArray, Table
from embedding.server.compatibility import SERVER_GROUPS
from embedding.server.config import SyncConfig
from embedding.server.figures.meters import Meters
from embedding.server.figures.reports import is_number, read_report
from embedding.server.flight.shell import Call, NodeSession, check_rows
from embedding.server.parts import Content, Moment, Part, PushArrival, Saved
from embedding.server.rowstore import Step
from embedding.server.state import ServerState
from embedding.server.validation import check_ids, check_nodes, check_report
from yeoron_lab.groups.client import Reached, RemoteChanges
from yeoron_lab.groups.entry import MERGE, PIECE, GroupEntry, Pieces, decode_entry
from yeoron_lab.groups.taking import take_over
from yeoron_lab.keeping.versions import versions_of
from yeoron_lab.requests import check_pace
from yeoron_lab.settings import GroupSettings, ShardSettings

logger = logging.getLogger(__name__)

FLUSH_S = 60.0
"""How long a snapshot waits for the groups' last changes."""
MOST_NODES = 10_000
"""Nodes that one group may tell of."""
MOST_MESSAGES = 8
"""Largest messages that what was read may take together."""


@dataclass
class Led:
    """A group that follows, as the leader sees it.

    taken_at  when the group took what it sent last (this server's monotonic clock); seen likewise;
              0: it sent nothing yet in this server's incarnation
    meters    bytes of its stream, which are not those of nodes
    nodes     its nodes, as its status has them; figures: what else it tells of itself
    """

    seen: float
    taken_at: float = 0.0
    entries: int = 0
    duplicates: int = 0
    rows_in: int = 0
    rows_out: int = 0
    meters: Meters = field(default_factory=Meters)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


class LedGroups(Part):
    """All groups that follow this server. The server's lock guards it."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.groups: dict[str, Led] = {}

    def merge(self, group: str, session: int, entry: GroupEntry) -> Ack:
        """Apply an entry; RefusedError, with nothing changed, when it cannot be."""
        self._check_leads()
        where = f"entry {entry.sequence} of group {group}"
        rows = self._state.arrival(Push(group, entry.sequence, 0, entry.rows)).push
        arrivals = [self._state.arrival(part) for part in entry.pushes]
        with self._state.changed:
            self._state.ledger.check(group, session)
            led = self._heard(group)
            if self._state.ledger.is_duplicate(group, entry.sequence):
                led.duplicates += 1
                self._state.meters.duplicates += 1
                return self._state.ack(group, duplicate=True)
            self._state.changes.check()
            for arrival, after in zip(arrivals, entry.after, strict=True):
                self._check_follows(arrival.push, after, where)
            for delta in rows.deltas:
                self._state.rows.slots(delta.table, delta.ids, where)
            self._apply(group, rows, arrivals, entry)
            led.entries += 1
            led.rows_in += sum(len(delta.ids) for delta in rows.deltas)
            self._state.changed.notify_all()
            return self._state.ack(group)

    def changes(self, group: str, seen: int, epoch: int, about: Mapping[str, Any]) -> RemoteChanges:
        """What to tell the group of changes since `seen` of this server's incarnation `epoch`."""
        self._check_leads()
        state = self._state
        with state.changed:
            self._hear(self._heard(group), about)
            first, vocabulary, ledger = seen < 0, state.vocabulary, state.ledger
            return RemoteChanges(
                state.epoch,
                versions_of(state.tables).clock,
                ledger.of(group).durable,
                vocabulary.version,
                vocabulary.next_id,
                vocabulary.closed,
                self._merging(),
                # Another incarnation of this server numbers changes from 0: the group hears of all
                # rows.
                self._unknown(group, seen if epoch == state.epoch else -1),
                nodes=tuple(
                    Reached(name, node.applied, node.applied_offset, node.tokens, node.durable)
                    for name, node in ledger.nodes.items()
                    if first and name not in self.groups
                ),
                fences=dict(ledger.fences.incarnations) if first else {},
            )

    def calls(self, stream: NodeSession) -> dict[str, Call]:
        """What a group may ask for."""
        return GroupCalls(self, stream).calls()

    def check_rollback(self) -> None:
        if following := sorted(self.present()):
            raise RefusedError(
                f"rollback: groups {', '.join(following)} follow and would bring back what is to "
                "be forgotten; stop their servers and pools first."
            )

    def check_policy(self, sync: SyncConfig, before: SyncConfig) -> None:
        """RefusedError for settings with which this server could not lead its groups."""
        if self.groups and not SERVER_GROUPS.met(sync.policy):
            raise RefusedError(
                f"configure: policy {sync.policy} while groups follow ({', '.join(self.groups)}): "
                f"{SERVER_GROUPS.reason}.",
                kind="control",
            )
        for name in self.present():
            every_s = self.groups[name].figures.get("every_s") or 0.0
            try:
                check_pace(every_s, sync.liveness_timeout_s)
            except ConfigError as error:
                raise RefusedError(f"configure: group {name} has {error}", kind="control") from None

    def save(self) -> Saved:
        return Saved({"groups": sorted(self.present())})

    def load(self, content: Content) -> None:
        """Groups that were there when the checkpoint was taken: what they have told nobody yet is
        waited for as if they had just been heard of."""
        now = time.monotonic()
        for name in content.facts.get("groups", ()):
            self.groups[name] = Led(now)
            self._state.reports.servers[name] = self.groups[name].meters
            member = self._state.machine.board.members[name]
            member.present, member.last_seen = True, now

    def present(self) -> list[str]:
        """Names of the groups that were heard of, or are to come back (under the lock)."""
        members = self._state.machine.board.members
        return [name for name in self.groups if name in members and members[name].present]

    def tick(self, now: float) -> None:
        """Time passed: the nodes of a group that is gone are gone too, and not waited for."""
        for name, led in self.groups.items():
            member = self._state.machine.board.members.get(name)
            if member is not None and not member.present:
                for node in led.nodes:
                    led.nodes[node] = {**led.nodes[node], "state": "gone"}
                    if not self._is_elsewhere(node, led):
                        self._state.accounts.tracker.leave(node)
        self._state.reports.guests = self.nodes()

    def catch_up(self) -> None:
        """Wait until every group has sent what it had by now, for a minute, or for as long as a
        group may be silent before it counts as gone.
        """
        began = time.monotonic()
        timeout_s = max(FLUSH_S, self._state.machine.config.liveness_timeout_s)
        asked: set[str] = set()

        def late(names: Iterable[str]) -> list[str]:
            return sorted(name for name in names if self.groups[name].taken_at < began)

        with self._state.changed:
            while waited_for := late(self.present()):
                asked.update(waited_for)
                left = began + timeout_s - time.monotonic()
                if left <= 0 or self._state.closing:
                    break
                self._state.changed.wait(min(left, 1.0))
            silent = late(asked)
        if silent:
            logger.warning("groups %s did not tell in time what they had", ", ".join(silent))

    def describe(self, at: Moment) -> dict[str, Any]:
        groups = []
        for name, led in sorted(self.groups.items()):
            member, entry = self._state.machine.board.members.get(name), self._state.ledger.of(name)
            groups.append(
                {
                    **led.figures,
                    "group": name,
                    "state": "up" if led.taken_at and member and member.present else "away",
                    "nodes": len(led.nodes),
                    "sequence": entry.applied,
                    "durable": entry.durable,
                    "lag_s": at.now - led.taken_at if led.taken_at else None,
                    "entries": led.entries,
                    "duplicates": led.duplicates,
                    "rows_in": led.rows_in,
                    "rows_out": led.rows_out,
                    "bytes_in": led.meters.bytes_in,
                    "bytes_out": led.meters.bytes_out,
                }
            )
        return {"groups": groups}

    def nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes of all groups, each with the group that it is in, or was in last."""
        nodes: dict[str, dict[str, Any]] = {}
        for group, led in self.groups.items():
            for node, figures in led.nodes.items():
                if node not in nodes or figures.get("state") != "gone":
                    nodes[node] = {**figures, "group": group}
        return nodes

    def _is_elsewhere(self, node: str, led: Led) -> bool:
        """Whether this server, or another group than this one, has the node."""
        member = self._state.machine.board.members.get(node)
        if member is not None and member.present:
            return True
        others = [
            self.groups[name].nodes for name in self.present() if self.groups[name] is not led
        ]
        return any(each[node].get("state") != "gone" for each in others if node in each)

    def _heard(self, group: str) -> Led:
        """The group gave a heartbeat."""
        now = time.monotonic()
        led = self.groups.setdefault(group, Led(now))
        self._state.reports.servers[group] = led.meters
        led.seen = now
        member = self._state.machine.board.members.get(group)
        if member is not None:
            member.present, member.last_seen = True, now
        return led

    def _check_leads(self) -> None:
        """RefusedError where this server cannot lead."""
        config, policy = self._state.config, self._state.machine.config.policy
        leader = part_of(config, GroupSettings).group.leader
        shards = part_of(config, ShardSettings)
        for is_so, what in (
            (
                shards.shards > 1,
                f"its rows lie on {shards.shards} shards; 1 shard is accepted",
            ),
            (
                shards.split == "columns",
                "its split is columns; rows is accepted",
            ),
            (
                leader is not None,
                f"it follows {leader} itself; group.leader has to name that",
            ),
            (
                not SERVER_GROUPS.met(policy),
                f"its policy is {policy}; {', '.join(SERVER_GROUPS.accepted)} are accepted",
            ),
        ):
            if is_so:
                raise RefusedError(f"this server cannot lead a group: {what}.", kind="greeting")

    def _check_follows(self, part: Push, after: int, where: str) -> None:
        if part.node in self.groups:
            raise RefusedError(f"{where}: {part.node} is a group, not a node.")
        check_ids(part, self._state.vocabulary)
        taken = self._state.ledger.of(part.node).accepted
        if taken != after:
            raise RefusedError(
                f"{where}: it follows on push {after} of node {part.node}, of which {taken} are "
                "taken: the node has pushed elsewhere meanwhile.",
                kind="sequence",
            )

    def _unknown(self, group: str, seen: int) -> dict[Table, IntArray]:
        """Ids of rows that others than the group changed since `seen`, by table."""
        unknown: dict[Table, IntArray] = {}
        tables, vocabulary = self._state.tables, self._state.vocabulary
        for table in tables.kinds:
            if table is Table.SUB:
                ids = slots = np.arange(tables.buckets, dtype=np.int64)
            else:
                ids = vocabulary.alive()
                slots = vocabulary.slots(ids, "changes")
            unknown[table] = ids[versions_of(tables).unknown(group, table, slots, seen)]
        return unknown

    def _apply(
        self, group: str, rows: Push, arrivals: list[PushArrival], entry: GroupEntry
    ) -> None:
        now = time.monotonic()
        self._state.accounts.complete(arrivals, now)
        for arrival in arrivals:
            self._state.ledger.accept(arrival.push.node, arrival.push.sequence, arrival.push.offset)
        self._state.ledger.accept(group, entry.sequence)
        plain = self._state.tables.optimizer.name != "sum"

        def planned() -> Iterator[Step]:
            for delta in rows.deltas:
                # Past an optimiser of this server: the group's own has shrunk them already.
                as_is = partial(self._state.rows.add, delta, None, None)
                yield as_is if plain else partial(self._state.add, delta, 1.0, group)
            yield partial(self._book, group, arrivals, entry, now)

        self._state.changes.carry_out(planned)

    def _book(self, group: str, arrivals: list[PushArrival], entry: GroupEntry, now: float) -> None:
        """The entry is in the rows."""
        for arrival, after in zip(arrivals, entry.after, strict=True):
            part = arrival.push
            self._state.learnt(arrival, now)
            self._state.meters.pushes += part.sequence - after - 1
        self._state.accounts.tokenizers.update(dict.fromkeys(entry.digests))
        take_over(self._state.scores, entry.scored)
        self._state.ledger.apply(group, entry.sequence)

    def _hear(self, led: Led, about: Mapping[str, Any]) -> None:
        """What a group says of itself and of its nodes; it was checked (`GroupCalls`)."""
        if "age_s" in about:
            led.taken_at = led.seen - about["age_s"]
        led.figures, led.nodes = about.get("figures", {}), dict(about.get("nodes", {}))
        reports = self._state.reports
        reports.guests = self.nodes()
        for name, each in led.nodes.items():
            if each.get("state") == "gone" and self._is_elsewhere(name, led):
                continue  # it moved: windows wait for what it reads there
            report = each.get("report", {})
            reports.put(name, report, led.seen)
            if each.get("state") == "gone":
                # With the last number that its own server took: what that holds back comes later.
                last, known = each.get("sequence"), self._state.ledger.of(name).accepted
                last = last if type(last) is int else known
                self._state.departures.gone(name, last)
                # It tells of this again and again, also once the node has pushed elsewhere.
                if name in about.get("departed", ()) and last >= known:
                    reports.departed.add(name)
                continue
            reports.departed.discard(name)
            self._state.departures.back(name)
            pending, event_now = read_report(report)
            self._state.accounts.tracker.report(name, pending, now=led.seen, event_now=event_now)

    def _merging(self) -> int:
        """Groups whose rows are added up: those that follow, and this one while it has nodes."""
        members = self._state.machine.board.members
        here = [m for name, m in members.items() if name not in self.groups]
        return max(1, len(self.present()) + any(member.active for member in here))


class GroupCalls:
    """The calls of one stream."""

    def __init__(self, groups: LedGroups, stream: NodeSession) -> None:
        self._groups, self._state, self._stream = groups, stream.state, stream
        self._pieces = Pieces()

    def calls(self) -> dict[str, Call]:
        calls = {
            PIECE: self._piece,
            MERGE: self._merge,
            "changes": self._changes,
            "rows": self._rows,
        }
        return {name: partial(self._counted, call) for name, call in calls.items()}

    def _counted(self, call: Call, message: Message) -> Message:
        """Bytes of a group's stream are not those of nodes, once the group is known."""
        answer = call(message)
        if (led := self._groups.groups.get(self._stream.node)) is not None:
            self._stream.meters = led.meters
        return answer

    def _piece(self, message: Message) -> Message:
        """Bytes of an entry whose end is yet to come."""
        state, tables = self._state, self._state.tables
        # Twice as many rows as there are here: the group may not have heard yet which were evicted.
        rows = 4 * state.vocabulary.rows + tables.buckets + 1
        most_bytes = MOST_MESSAGES * state.config.max_message_bytes + rows * (4 * tables.dim + 8)
        return self._pieces.add(message, most_bytes)

    def _merge(self, message: Message) -> Message:
        group, session = self._stream.node, self._stream.number
        entry = decode_entry(self._pieces.whole(message), group)
        check_nodes(self._state.ledger.nodes, [part.node for part in entry.pushes])
        return to_message(self._groups.merge(group, session, entry), status="ok")

    def _changes(self, message: Message) -> Message:
        group = self._stream.node
        header, about = message.header, _checked_about(self._state, message.header.get("told"))
        seen = whole(header, "seen", least=-1)
        changes = self._groups.changes(group, seen, whole(header, "epoch"), about)
        asks = {name: self._stream.asks(name) for name in about.get("nodes", {})}
        return to_message(replace(changes, asks=asks), status="ok")

    def _rows(self, message: Message) -> Message:
        group = self._stream.node
        if group not in self._groups.groups:
            raise RefusedError("rows: `changes` comes first, by which a group is known.")
        ids = message.array("ids", "i8", 1)
        half = message.header.get("rows") == "float16"
        try:
            table = Table(str(message.header.get("table")))
        except ValueError as error:
            raise RefusedError("rows: `table` must be in, out or sub.") from error
        state = self._state
        check_rows(len(ids), state.dim, state.config.max_message_bytes, half=half)
        with state.lock:
            slots = state.rows.slots(table, ids, "rows")
            rows = state.tables.device.as_sent(state.tables.gather(table, slots), half)
            self._groups.groups[group].rows_out += len(ids)
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
