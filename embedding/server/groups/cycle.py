"""One exchange of a group with its leader: what moved goes there, what others changed comes."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedding.exchange.compression.halves import widen
from embedding.exchange.groups.client import RemoteChanges, Seen
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.groups.confirming import Confirmations
from embedding.server.groups.following import Follower
from embedding.server.groups.taking import Taken

COUNTS_S = 10.0
"""How old the counts of words may get while no word comes or goes."""
ROWS = 16_384
"""Rows that are fetched at a time, at most; they take half of a message, at most."""


@dataclass
class CycleFigures:
    """What all exchanges did.

    about     what the leader is told of the group and of its nodes, as of when it was taken
    taken_at  when that was (monotonic seconds)
    groups    groups whose rows the leader adds up
    """

    about: dict[str, Any]
    taken_at: float
    exchanges: int = 0
    rows_out: int = 0
    rows_in: int = 0
    groups: int = 1

    @property
    def age_s(self) -> float:
        """How long ago anything was taken."""
        return time.monotonic() - self.taken_at


class ExchangeCycle:
    """Tells and asks, one exchange at a time, under `lock`.

    An entry that was taken is sent until the leader has it, before another is taken: what was
    taken of rows may not be at the leader yet, so that nothing is adopted over it.

    confirmations  which entries are in a checkpoint of the leader
    figures        what all exchanges did
    """

    def __init__(self, follower: Follower, confirmations: Confirmations) -> None:
        config = follower.state.config
        self._follower, self._leader = follower, follower.leader
        self.confirmations = confirmations
        self.lock = threading.Lock()
        self.figures = CycleFigures({"nodes": {}, "figures": {}}, time.monotonic())
        self._version, self._counted_at = 0, 0.0
        self._half = config.group.rows == "float16"
        self._rows = max(1, min(ROWS, config.max_message_bytes // (8 * follower.state.dim)))
        self._shards = config.shards
        self._seen: Seen = ()
        self._sequence = 0
        self._under_way: Taken | None = None

    @property
    def sequence(self) -> int:
        """Of the last entry that was taken."""
        return self._sequence

    @property
    def takes(self) -> bool:
        """Whether the next exchange takes what was pushed until then."""
        return self._under_way is None and not self._follower.cutting

    def begin(self) -> None:
        """Greet the leader and become its replica; UnavailableError while it is away."""
        self._sequence = self._follower.greet().sequence
        self.adopt_changes()

    def run(self, about: dict[str, Any] | None) -> None:
        """Tell the leader what moved and was read, and adopt what others changed (under `lock`).

        about  of the group and its nodes; None where nothing is taken
        """
        if self._under_way is None:
            if self._follower.rows.lacking:
                # What moved cannot be told before. Other rows stay as they are: what was
                # taken of them may not be at the leader yet.
                self._changes()
                self._follower.rows.mend(self._live)
            self._under_way = self._take(about)
        taken = self._under_way
        if taken is not None:
            with self.confirmations.asking():
                self._leader.client.merge(taken.entry)
            self._follower.rows.merged()
        self.adopt_changes()
        self.figures.exchanges += 1

    def _take(self, about: dict[str, Any] | None) -> Taken | None:
        if about is not None:
            self.figures.taken_at, self.figures.about = time.monotonic(), about
        taken = self._follower.take(self._sequence + 1, self.figures.groups)
        if taken is None:
            return None
        self._sequence += 1
        self._leader.client.keep(taken.entry)
        ends = {part.node: part.sequence for part in taken.entry.parts}
        self.confirmations.sent(self._sequence, ends)
        self.figures.rows_out += sum(len(delta.ids) for delta in taken.entry.rows)
        return taken

    def adopt_changes(self) -> None:
        """Ask what changed, and have it here."""
        changes = self._changes()
        self.figures.groups = changes.groups
        if not self._seen:
            self._follower.resume(changes)
            reached = {node: at.sequence for node, at in changes.nodes.items()}
            self.confirmations.sent(self._sequence, reached)
        self._follow_words(changes)
        mended = self._follower.rows.mend(self._live)  # these have all rows by now
        for table, ids in changes.ids.items():
            rest = ids[~np.isin(ids % self._shards, mended)]
            for at in range(0, len(rest), self._rows):
                some = rest[at : at + self._rows]
                live = self._live(table, some)
                self.figures.rows_in += self._follower.rows.adopt(table, some, live)
        self._adopt_own(changes)
        self._seen = changes.seen
        self.confirmations.confirm(changes.durable)

    def _follow_words(self, changes: RemoteChanges) -> None:
        """Have the words of the leader; they are asked for when they changed, or got old."""
        now = time.monotonic()
        old = not changes.closed and now - self._counted_at > COUNTS_S
        given = changes.next_id > self._follower.state.vocabulary.next_id
        if changes.version != self._version or given or old:
            with self.confirmations.asking():
                delta = self._leader.client.calls.vocabulary(self._version)
            self._follower.follow_words(delta, changes.next_id, closed=changes.closed)
            self._version, self._counted_at = delta.version, now

    def _changes(self) -> RemoteChanges:
        about = {**self.figures.about, "age_s": self.figures.age_s}
        with self.confirmations.asking():
            return self._leader.client.changes(self._seen, about)

    def _live(self, table: Table, ids: IntArray) -> FloatArray:
        """Rows as the leader has them now."""
        with self.confirmations.asking():
            return widen(self._leader.client.live(table, ids, half=self._half))

    def _adopt_own(self, changes: RemoteChanges) -> None:
        """Of what the group told last, rows that nobody else changed are at the leader now."""
        taken, self._under_way = self._under_way, None
        if taken is None:
            return
        for table, (ids, rows) in taken.rows.items():
            alone = ~np.isin(ids, changes.ids.get(table, np.empty(0, dtype=np.int64)))
            self._follower.rows.adopt(table, ids[alone], rows[alone])
