"""The order in which the shards change their rows, decided by the primary alone.

Nodes send rows straight to the shards; the primary sends every shard the same list of entries: ids
given and evicted, pushes to apply, copies to take. All shards carry them out in that order, so that
together they hold what one server would hold (state machine replication, Schneider 1990; data and
order of changes travel apart as in GFS, Ghemawat 2003, section 3). Carrying an entry out twice
changes nothing: pushes are numbered by node, and ids are never given again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, Table
from embedding.server.rowstore import LogPosition

_BATCH = 256
"""Most entries in one message."""
MOST_EVICTED = 100_000
"""Most evicted ids in one entry or message, which has to fit into a message's header. A push counts
as its node's name is long. Ten new ids count as one: their rows have to be made before the message
is answered."""
MOST_GIVEN = 32_768
"""Most new ids in one entry: what a shard needs meanwhile, to make their rows, goes with them."""
_ID_BYTES = 24
"""Bytes that an id takes in a message's header, at most."""


PushNumber = tuple[str, int]
"""A push: its node, and its number there."""


@dataclass(frozen=True)
class Admit:
    """The ids first … first + count - 1 are given; `evicted` ids lose their rows first."""

    first: int
    count: int
    evicted: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class Change:
    """The pushes (node, sequence) change the rows now, in this order.

    scale    by which they are multiplied; 0: they are dropped
    average  a row moves by the mean over those of them that hold it
    """

    tickets: tuple[PushNumber, ...]
    scale: float
    average: bool = False


@dataclass(frozen=True)
class CopyRows:
    """Copy all rows as they are now, under this number."""

    number: int


LogEntry = Admit | Change | CopyRows


@dataclass
class DurableFloor:
    """What every shard has on disk, so that nobody needs it sent again.

    applied  last push by node; next_id  the first id that some shard may not know
    """

    applied: dict[str, int] = field(default_factory=dict)
    next_id: int = 0

    def pass_over(self, entry: LogEntry) -> None:
        """An entry is on every shard's disk."""
        if isinstance(entry, Admit):
            self.next_id = max(self.next_id, entry.first + entry.count)
        elif isinstance(entry, Change):
            for node, sequence in entry.tickets:
                self.applied[node] = max(self.applied.get(node, 0), sequence)


class ShardLog:
    """Entries at positions 1, 2, 3, …; those that every shard has on disk are dropped.

    Thread-safe. number  of this incarnation of the primary: positions of another incarnation mean
    nothing.
    most_bytes  of a message
    """

    def __init__(self, number: int, most_bytes: int = 2**62) -> None:
        self.number = number
        self._most = min(MOST_EVICTED, most_bytes // (2 * _ID_BYTES))
        self.floor = DurableFloor()
        self.changed = threading.Condition()
        self._entries: deque[LogEntry] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def position(self) -> int:
        """Of the newest entry."""
        return self._dropped + len(self._entries)

    def append(self, entry: LogEntry) -> int:
        with self.changed:
            self._entries.append(entry)
            self.changed.notify_all()
            return self.position

    def admit(self, first: int, count: int, evicted: IntArray) -> int:
        """Note that ids were given, and which lost their rows to make room."""
        while len(evicted) > self._most:
            self.append(Admit(first, 0, evicted[: self._most]))
            evicted = evicted[self._most :]
        while count > MOST_GIVEN:
            self.append(Admit(first, MOST_GIVEN, evicted))
            first, count, evicted = first + MOST_GIVEN, count - MOST_GIVEN, evicted[:0]
        return self.append(Admit(first, count, evicted))

    def after(self, position: int, *, timeout_s: float = 0.0) -> tuple[int, list[LogEntry]]:
        """Position of the first entry returned, and the next entries; waits for the first one."""
        with self.changed:
            if timeout_s and self.position <= position:
                self.changed.wait(timeout_s)
            start = max(0, position - self._dropped)
            entries: list[LogEntry] = []
            weight = 0
            for entry in islice(self._entries, start, start + _BATCH):
                weight += _weight(entry)
                if entries and weight > self._most:
                    break
                entries.append(entry)
            return self._dropped + start + 1, entries

    def drop(self, position: int) -> None:
        """Every shard has the entries up to `position` on disk."""
        with self.changed:
            # Booked in the floor as it goes: by that a shard is found out later whose folder is an
            # old copy. It would ask for entries from here on and miss those before in silence.
            while self._entries and self._dropped < position:
                self.floor.pass_over(self._entries.popleft())
                self._dropped += 1

    def to_json(self) -> dict[str, Any]:
        """For a checkpoint of the primary: entries that a shard may have to get again."""
        with self.changed:
            entries = [entry for entry in self._entries if isinstance(entry, Admit | Change)]
            return {
                "applied": dict(self.floor.applied),
                "next_id": self.floor.next_id,
                "entries": [as_json(entry) for entry in entries],
            }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what a checkpoint kept."""
        with self.changed:
            self.floor = DurableFloor(dict(saved["applied"]), int(saved["next_id"]))
            self._entries = deque(from_json(each) for each in saved["entries"])


def _weight(entry: LogEntry) -> int:
    """What an entry counts towards `MOST_EVICTED`."""
    if isinstance(entry, Admit):
        return len(entry.evicted) + entry.count // 10
    if isinstance(entry, Change):
        return sum(3 + len(node) for node, _ in entry.tickets)
    return 1


def as_json(entry: LogEntry) -> list[Any]:
    """JSON-safe form; `from_json` is the inverse."""
    if isinstance(entry, Admit):
        return ["admit", entry.first, entry.count, entry.evicted.tolist()]
    if isinstance(entry, Change):
        tickets = [list(ticket) for ticket in entry.tickets]
        return ["change", tickets, entry.scale, entry.average]
    return ["copy", entry.number]


def from_json(values: Any) -> LogEntry:
    """Inverse of `as_json`; ValueError or TypeError for anything else."""
    kind, *rest = values
    if kind == "admit":
        first, count, evicted = rest
        return Admit(int(first), int(count), np.array(evicted, dtype=np.int64))
    if kind == "change":
        # A checkpoint of a training with aggregators, as there was until 30 November 2026, names
        # sums as well: of those pushes the nodes have their own rows, which the shards wait for.
        named, scale, average, *_ = rest
        tickets = tuple((str(node), int(sequence)) for node, sequence in named)
        return Change(tickets, float(scale), bool(average))
    if kind == "copy":
        return CopyRows(int(rest[0]))
    raise ValueError(f"entry {kind!r}: not known")


def string(header: Mapping[str, Any], name: str, most: int = 4096) -> str:
    """The string `name` of a header, of at most `most` characters."""
    value = header.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise RefusedError(f"message: {name!r} must be a string of at most {most:,} characters.")
    return value


def at_of(message: Message) -> LogPosition:
    """Incarnation and position up to which the log is to be carried out; RefusedError when it is
    missing."""
    at = message.header.get("at")
    if not (isinstance(at, list) and len(at) == 2 and all(type(n) is int for n in at)):
        raise RefusedError("message: 'at' must be two whole numbers.")
    return at[0], at[1]


def table_of(message: Message) -> Table:
    """The table that is meant; RefusedError for another."""
    try:
        return Table(string(message.header, "table"))
    except ValueError as error:
        raise RefusedError("`table`: in, out or sub is accepted.") from error
