"""One exchange of a group with its leader: what moved goes there, what others changed comes.

To its nodes a server that follows is a parameter server like any other: what they push it applies
at once, to a replica of the leading group's tables.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from embedding.exchange.compression.halves import widen
from embedding.exchange.protocol import VocabularyDelta
from embedding.kernel.errors import ConfigError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.state import ServerState
from yeoron_lab.groups.client import RemoteChanges, Seen
from yeoron_lab.groups.leader import Leader, LeadersWords
from yeoron_lab.groups.replica import ReplicaRows
from yeoron_lab.groups.taking import Cut, Taken, compose, drained

logger = logging.getLogger(__name__)


class Confirmations:
    """A push of a node is durable once a checkpoint of the leader holds the entry it went with.

    wake  set when a checkpoint is to be asked for
    """

    def __init__(self, state: ServerState, leader: Leader, wake: threading.Event) -> None:
        self._state = state
        self._leader = leader
        self._wake = wake
        self._sent: list[tuple[int, dict[str, int]]] = []
        self._wanted = False
        self._asked = 0

    def sent(self, entry: int, ends: dict[str, int]) -> None:
        """With entry number `entry` the leader has pushes up to these, by node."""
        self._sent.append((entry, ends))
        if self._leader.client.log.load > 0.5:
            self._wanted = True

    def confirm(self, durable: int) -> None:
        """The leader has entries up to `durable` in a checkpoint."""
        with self._state.lock:
            while self._sent and self._sent[0][0] <= durable:
                _, ends = self._sent.pop(0)
                self._state.ledger.persisted(ends)

    def want(self) -> None:
        """Have a checkpoint soon."""
        self._wanted = True
        self._wake.set()

    def tend(self, entry: int) -> None:
        """Ask for a checkpoint that is wanted; it will hold entries up to `entry`."""
        if self._wanted:
            self._wanted, self._asked = False, entry
            with self.asking():
                self._leader.client.checkpoint(wait=False)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """What is asked of the leader in here says whether it is away."""
        try:
            yield
        except UnavailableError as error:
            if not self._leader.away:
                name = self._state.config.group.name
                logger.warning("group %s: %s Going on alone.", name, error)
            self._leader.away = True
            if self._leader.client.log.confirmed < self._asked:
                self._wanted = True  # it may have died before it wrote one
            raise
        self._leader.away = False


COUNTS_S = 10.0
"""How old the counts of words may get while no word comes or goes."""
ROWS = 16_384
"""Rows that are fetched at a time, at most; they take half of a message, at most."""


@dataclass
class CycleFigures:
    """What all exchanges did.

    about     what the leader hears of the group and of its nodes, as of when it was taken
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
        return time.monotonic() - self.taken_at


class ExchangeCycle:
    """Tells and asks, one exchange at a time, under `lock`.

    An entry that was taken is sent until the leader has it, before another is taken: what was
    taken of rows may not be at the leader yet, so that nothing is adopted over it.

    confirmations  which entries are in a checkpoint of the leader
    figures        what all exchanges did
    sequence       of the last entry that was taken
    asks           what the leader asks each node to hand in
    """

    def __init__(
        self, state: ServerState, leader: Leader, rows: ReplicaRows, confirmations: Confirmations
    ) -> None:
        self._state, self._leader, self._rows = state, leader, rows
        self.confirmations = confirmations
        self.lock = threading.Lock()
        self.figures = CycleFigures({"nodes": {}, "figures": {}}, time.monotonic())
        self.sequence = 0
        self.asks: dict[str, Any] = {}
        self._version, self._counted_at = 0, 0.0
        self._half = state.config.group.rows == "float16"
        self._most_rows = max(1, min(ROWS, state.config.max_message_bytes // (8 * state.dim)))
        self._seen: Seen = ()
        self._cut: Cut | None = None
        self._under_way: Taken | None = None

    @property
    def takes(self) -> bool:
        """Whether the next exchange takes what was pushed until then: no entry is under way, nor
        one begun whose rows could not be fetched yet."""
        return self._under_way is None and self._cut is None

    def begin(self) -> None:
        """Greet the leader and become its replica.

        ConfigError when it is of another model, UnavailableError while it is away.
        """
        welcome = self._leader.greet()
        if welcome.dim != self._state.dim:
            raise ConfigError(
                f"group.leader: its rows have {welcome.dim} columns, this server's "
                f"{self._state.dim}; start both with the same model."
            )
        self.sequence = welcome.sequence
        self._adopt_changes()

    def run(self, about: dict[str, Any] | None) -> None:
        """Tell the leader what moved and was read, and adopt what others changed (under `lock`).

        about  of the group and its nodes; None where nothing is taken
        """
        if self._under_way is None:
            if self._rows.lacking:
                # What moved cannot be told before. Other rows stay as they are: what was
                # taken of them may not be at the leader yet.
                self._changes()
                self._rows.mend(self._live)
            self._under_way = self._take(about)
        taken = self._under_way
        if taken is not None:
            with self.confirmations.asking():
                self._leader.client.send(taken.entry)
            self._rows.merged()
        self._adopt_changes()
        self.figures.exchanges += 1

    def _take(self, about: dict[str, Any] | None) -> Taken | None:
        """Everything since the last time, as the next entry; None when nothing was pushed."""
        if about is not None:
            self.figures.taken_at, self.figures.about = time.monotonic(), about
        with self._state.lock:
            self._state.changes.check()
            if self._cut is None and self._leader.untold:
                self._cut = self._begin_cut()
            elif self._cut is None:
                self._rows.all_merged()
            cut = self._cut
        if cut is None:
            return None
        group = self._state.config.group
        taken = compose(cut, cut.moves(), group, self.sequence + 1, self.figures.groups)
        self._cut = None
        self.sequence += 1
        self._leader.client.keep(taken.entry)
        ends = {part.node: part.sequence for part in taken.entry.pushes}
        self.confirmations.sent(self.sequence, ends)
        self.figures.rows_out += sum(len(delta.ids) for delta in taken.entry.rows)
        return taken

    def _begin_cut(self) -> Cut:
        """Everything up to now (under the server's lock)."""
        moves = self._rows.take_moves()  # first: what it has no memory for is tried again
        pushes, digests = self._leader.take()
        return Cut(pushes, digests, tuple(drained(self._state.scores)), moves)

    def _adopt_changes(self) -> None:
        """Ask what changed, and have it here."""
        changes = self._changes()
        self.figures.groups = changes.groups
        self.asks = changes.asks
        if not self._seen:
            reached = self._resume(changes)
            self.confirmations.sent(self.sequence, reached)
        self._follow_words(changes)
        mended = self._rows.mend(self._live)  # these have all rows by now
        for table, ids in changes.ids.items():
            rest = ids[~np.isin(ids % self._state.config.shards, mended)]
            for at in range(0, len(rest), self._most_rows):
                some = rest[at : at + self._most_rows]
                live = self._live(table, some)
                self.figures.rows_in += self._rows.adopt(table, some, live)
        self._adopt_own(changes)
        self._seen = changes.seen
        self.confirmations.confirm(changes.durable)

    def _follow_words(self, changes: RemoteChanges) -> None:
        """Have the words of the leader; they are asked for when they changed, or got old."""
        now = time.monotonic()
        old = not changes.closed and now - self._counted_at > COUNTS_S
        given = changes.next_id > self._state.vocabulary.next_id
        if changes.version != self._version or given or old:
            with self.confirmations.asking():
                delta = self._leader.client.vocabulary(self._version)
            self._adopt_words(delta, changes)
            self._version, self._counted_at = delta.version, now

    def _adopt_words(self, delta: VocabularyDelta, changes: RemoteChanges) -> None:
        """Have words by the leader's ids, and their counts.

        Ids from `changes.next_id` on may have been given since: of these `delta` may know nothing.
        """
        state, vocabulary, next_id = self._state, self._state.vocabulary, changes.next_id
        with state.words.admitting, state.changed:
            own = vocabulary.alive()
            gone = np.setdiff1d(own[own < next_id], delta.alive, assume_unique=True)
            if len(gone):
                state.words.install([], gone)
            ids = np.asarray(delta.ids, dtype=np.int64)
            order = np.argsort(ids, kind="stable")
            words = cast(LeadersWords, state.words)
            words.install_given(ids[order], [delta.words[i] for i in order.tolist()])
            vocabulary.next_id = max(vocabulary.next_id, next_id)
            vocabulary.set_counts(delta.alive, delta.alive_counts)
            if changes.closed and not vocabulary.closed:
                vocabulary.shut()

    def _resume(self, changes: RemoteChanges) -> dict[str, int]:
        """Go on where the leader's tables are: up to which push of each node. A node keeps what
        no checkpoint of the leader holds."""
        ledger = self._state.ledger
        with self._state.changed:
            for node, incarnations in changes.fences.items():
                ledger.fences.incarnations[node] = tuple(incarnations)
            for at in changes.nodes:
                ledger.restore(at.node, at.sequence, at.tokens, at.offset)
                ledger.of(at.node).durable = at.durable
        reached = {at.node: at.sequence for at in changes.nodes}
        self._rows.begin(reached)
        return reached

    def _changes(self) -> RemoteChanges:
        about = {**self.figures.about, "age_s": self.figures.age_s}
        with self.confirmations.asking():
            return self._leader.client.changes(self._seen, about)

    def _live(self, table: Table, ids: IntArray) -> FloatArray:
        with self.confirmations.asking():
            return widen(self._leader.client.live(table, ids, half=self._half))

    def _adopt_own(self, changes: RemoteChanges) -> None:
        """Of what the group sent last, rows that nobody else changed are at the leader now."""
        taken, self._under_way = self._under_way, None
        if taken is None:
            return
        for table, (ids, rows) in taken.rows.items():
            alone = ~np.isin(ids, changes.ids.get(table, np.empty(0, dtype=np.int64)))
            self._rows.adopt(table, ids[alone], rows[alone])
