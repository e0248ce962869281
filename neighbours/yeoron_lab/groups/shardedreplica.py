"""Rows of a server that follows, on shards.

The shards keep how far rows have moved; an entry of the log says until which push that is told. The
leader is their checkpoint: a shard that was started again gets the leader's rows, which hold all
pushes up to the entry that was merged last, and the log from there on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np

from embedding.exchange.codec import from_message
from embedding.exchange.wire import Message, whole
from embedding.kernel.errors import UnavailableError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.ledger.sequence import Ledger
from embedding.server.rowstore import LogPosition
from embedding.server.words.vocabulary import Vocabulary
from yeoron_lab.groups.replica import Live, Moved, Moves, ReplicaRows
from yeoron_lab.shards.client.split import places
from yeoron_lab.shards.link import LateError, ShardLink
from yeoron_lab.shards.log import TakeMoves
from yeoron_lab.shards.rows import ShardedRows

T = TypeVar("T")

_ROWS = 16_384
"""Rows that travel at a time, at most; with their bases they take half of a message, at most."""
_REACH_S = 10.0
"""How long a shard may take until it has carried out the log, before it counts as away."""
_PAUSE_S = 0.02


@dataclass(frozen=True)
class ReplicatedUpTo:
    """Up to which position of the log the leader has the rows, and with which pushes, by node."""

    position: int = 0
    applied: dict[str, int] = field(default_factory=dict)


class ShardedReplica(ReplicaRows):
    """See ReplicaRows: rows on shards, none of which keeps anything on a disk.

    most_bytes  of a message to a shard
    """

    def __init__(
        self,
        rows: ShardedRows,
        vocabulary: Vocabulary,
        ledger: Ledger,
        lock: threading.RLock,
        most_bytes: int,
    ) -> None:
        self._log, self._links = rows.log, rows.links
        self._tables = (Table.IN, Table.OUT, *([Table.SUB] if rows.composer.buckets else []))
        self._buckets = rows.composer.buckets
        self._vocabulary, self._ledger, self._lock = vocabulary, ledger, lock
        self._merged = self._telling = ReplicatedUpTo()
        self._rows = max(1, min(_ROWS, most_bytes // (16 * rows.tables.dim)))

    @property
    def moved(self) -> int:
        return self._links.total("moved_rows")

    @property
    def lacking(self) -> bool:
        return any(link.lacks or link.away for link in self._links.links)

    def when_lacking(self, call: Callable[[], None]) -> None:
        self._links.when_lacking(call)

    def begin(self, applied: Mapping[str, int]) -> None:
        self._merged = ReplicatedUpTo(0, dict(applied))

    def take_moves(self) -> Callable[[], Moves]:
        position = self._log.append(TakeMoves())
        self._telling = self._here(position)
        return partial(self._moves, (self._log.number, position))

    def _here(self, position: int) -> ReplicatedUpTo:
        applied = {name: entry.applied for name, entry in self._ledger.nodes.items()}
        return ReplicatedUpTo(position, applied)

    def merged(self) -> None:
        # Not before: a shard that dies until then is given rows without this entry, and needs it.
        self._merged = self._telling
        self._log.drop(self._merged.position)

    def all_merged(self) -> None:
        """See ReplicaRows: what is in the log since are words, which shards that begin now have."""
        position = min(link.position for link in self._links.links)
        if position > self._merged.position:
            self._merged = self._here(position)
            self._log.drop(position)

    def mend(self, live: Live) -> tuple[int, ...]:
        return tuple(self._seeded(link, live) for link in self._links.links if link.lacks)

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray) -> int:
        where = places(ids, len(self._links))
        with self._lock:
            at = (self._log.number, self._log.position)
        return sum(
            _patiently(link, partial(_adopt, link, table, ids[own], rows[own], at))
            for link, own in zip(self._links.links, where, strict=True)
            if len(own)
        )

    def _seeded(self, link: ShardLink, live: Live) -> int:
        """Have a shard begin where the leader's rows are; its number."""
        incarnation = link.incarnation()
        with self._lock:
            words, next_id = self._vocabulary.alive(), self._vocabulary.next_id
        grams = np.arange(self._buckets, dtype=np.int64)
        for table in self._tables:
            ids = grams if table is Table.SUB else words
            own = ids[self._links.layout.held(ids, link.index)]
            for first in range(0, len(own), self._rows):
                part = own[first : first + self._rows]
                _adopt(link, table, part, live(table, part), None)
        # The leader's rows hold what was merged last and nothing later (`mend`): the shard goes on
        # at that entry of the log, and the nodes send the rows of what comes after.
        merged = self._merged
        link.stand(incarnation, (self._log.number, merged.position), merged.applied, next_id)
        return link.index

    def _moves(self, at: tuple[int, int]) -> Moves:
        """What moved until the entry `at` of the log, from all shards."""
        moves = {}
        for table in self._tables:
            parts = [each for link in self._links.links for each in self._moved(link, table, at)]
            if parts:
                moves[table] = Moved(
                    np.concatenate([part.slots for part in parts]),
                    np.concatenate([part.bases for part in parts]),
                    np.concatenate([part.now for part in parts]),
                )
        return moves

    def _moved(self, link: ShardLink, table: Table, at: tuple[int, int]) -> list[Moved]:
        """All that moved on a shard, in pieces."""
        pieces: list[Moved] = []
        while not pieces or len(pieces[-1].slots) == self._rows:
            first = sum(len(each.slots) for each in pieces)
            pieces.append(_patiently(link, partial(_moves, link, table, at, first, self._rows)))
        return [each for each in pieces if len(each.slots)]


def _moves(link: ShardLink, table: Table, at: LogPosition, first: int, most: int) -> Moved:
    """Some of the rows that had moved at the entry `at`, by id."""
    header = {"op": "moves", "table": table, "at": list(at), "first": first, "most": most}
    return from_message(Moved, link.fetch(Message(header)))


def _adopt(
    link: ShardLink, table: Table, ids: IntArray, rows: FloatArray, at: LogPosition | None
) -> int:
    """The leader has these rows; how many of their words have one there (`FollowingCalls`)."""
    header = {"op": "adopt", "table": table, "at": None if at is None else list(at)}
    answer = link.fetch(Message(header, {"ids": ids, "rows": rows}))
    return whole(answer.header, "rows")


def _patiently(link: ShardLink, ask: Callable[[], T]) -> T:
    """What a shard answers; UnavailableError while it is away or behind."""
    deadline = time.monotonic() + _REACH_S
    while True:
        try:
            return ask()
        except LateError as error:
            if link.lacks or time.monotonic() > deadline:
                raise UnavailableError(
                    f"shard {link.index} is not up to date with its group."
                ) from error
        time.sleep(_PAUSE_S)
