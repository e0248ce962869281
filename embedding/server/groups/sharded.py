"""The state of a server that follows and whose rows lie on shards.

The shards keep how far rows have moved; an entry of the log says until which push that is told. The
leader is their checkpoint: a shard that was started again gets the leader's rows, which hold all
pushes up to the entry that was merged last, and the log from there on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from embedding.exchange.groups.client import Reached
from embedding.exchange.shards.split import places
from embedding.kernel.errors import UnavailableError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.groups.drift import Moved
from embedding.server.groups.following import Follows, Live
from embedding.server.groups.taking import Moves
from embedding.server.shards.leading import LeadingState
from embedding.server.shards.link import ShardLink
from embedding.server.shards.log import TakeMoves

T = TypeVar("T")

_ROWS = 16_384
"""Rows that travel at a time, at most; with their bases they take half of a message, at most."""
_REACH_S = 10.0
"""How long a shard may take until it has carried out the log, before it counts as away."""
_PAUSE_S = 0.02


@dataclass(frozen=True)
class Standing:
    """Up to which position of the log the leader has the rows, and with which pushes, by node."""

    position: int = 0
    applied: dict[str, int] = field(default_factory=dict)


class ShardedFollowing(Follows, LeadingState):
    """A replica whose rows lie on shards, none of which keeps anything on a disk."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._told = self._telling = Standing()
        self._rows = max(1, min(_ROWS, self.config.max_message_bytes // (16 * self.dim)))

    @property
    def moved_rows(self) -> int:
        """See Follows; as the shards have said last."""
        return self.links.total("moved_rows")

    @property
    def lacks_rows(self) -> bool:
        """See Follows."""
        return any(link.lacks or link.away for link in self.links.links)

    def when_lacking(self, call: Callable[[], None]) -> None:
        """See Follows."""
        for link in self.links.links:
            link.on_lacking = call

    def resume(self, nodes: dict[str, Reached], fences: dict[str, tuple[str, ...]]) -> None:
        """See Follows."""
        super().resume(nodes, fences)
        self._told = Standing(0, {node: at.sequence for node, at in nodes.items()})

    def cut_moves(self) -> Callable[[], Moves]:
        """See Follows."""
        position = self.log.append(TakeMoves())
        applied = {name: entry.applied for name, entry in self.ledger.nodes.items()}
        self._telling = Standing(position, applied)
        return partial(self._moves, (self.log.number, position))

    def merged(self) -> None:
        """See Follows."""
        self._told = self._telling
        self.log.drop(self._told.position)

    def all_told(self) -> None:
        """See Follows: what is in the log since are words, which shards that begin now have."""
        position = min(link.position for link in self.links.links)
        if position > self._told.position:
            applied = {name: entry.applied for name, entry in self.ledger.nodes.items()}
            self._told = Standing(position, applied)
            self.log.drop(position)

    def mend(self, live: Live) -> tuple[int, ...]:
        """See Follows; to be called while the leader has all that was taken."""
        return tuple(self._seeded(link, live) for link in self.links.links if link.lacks)

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray) -> int:
        """See Follows."""
        where = places(ids, len(self.links))
        with self.lock:
            at = (self.log.number, self.log.position)
        return sum(
            _patiently(link, partial(link.adopt, table, ids[own], rows[own], at))
            for link, own in zip(self.links.links, where, strict=True)
            if len(own)
        )

    def _seeded(self, link: ShardLink, live: Live) -> int:
        """Have a shard begin where the leader's rows are; its number."""
        life = link.life()
        with self.lock:
            words, next_id = self.vocabulary.alive(), self.vocabulary.next_id
        held = {Table.IN: words, Table.OUT: words}
        if self.composer.buckets:
            held[Table.SUB] = np.arange(self.composer.buckets, dtype=np.int64)
        for table, ids in held.items():
            own = ids[self.links.layout.held(ids, link.index)]
            for first in range(0, len(own), self._rows):
                part = own[first : first + self._rows]
                link.adopt(table, part, live(table, part), None)
        told = self._told
        link.stand(life, (self.log.number, told.position), told.applied, next_id)
        return link.index

    def _moves(self, at: tuple[int, int]) -> Moves:
        """What moved until the entry `at` of the log, from all shards."""
        tables = (*self.tables.kinds, *([Table.SUB] if self.composer.buckets else []))
        found = {}
        for table in tables:
            parts = [each for link in self.links.links for each in self._moved(link, table, at)]
            if parts:
                found[table] = Moved(
                    np.concatenate([part.slots for part in parts]),
                    np.concatenate([part.bases for part in parts]),
                    np.concatenate([part.now for part in parts]),
                )
        return found

    def _moved(self, link: ShardLink, table: Table, at: tuple[int, int]) -> list[Moved]:
        """All that moved on a shard, in pieces."""
        found: list[Moved] = []
        while not found or len(found[-1].slots) == self._rows:
            first = sum(len(each.slots) for each in found)
            found.append(_patiently(link, partial(link.moves, table, at, first, self._rows)))
        return [each for each in found if len(each.slots)]


def _patiently(link: ShardLink, ask: Callable[[], T | None]) -> T:
    """What a shard answers; UnavailableError while it is away or behind."""
    deadline = time.monotonic() + _REACH_S
    while True:
        answer = ask()
        if answer is not None:
            return answer
        if link.lacks or time.monotonic() > deadline:
            raise UnavailableError(f"shard {link.index} is not up to date with its group.")
        time.sleep(_PAUSE_S)
