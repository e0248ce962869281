"""A group's exchange with its leader: a thread that tells what moved here and was read, and adopts
what others changed.

To its nodes a server that follows is a parameter server like any other: what they push it applies
at once, to a replica of the leading group's tables. A push of a node is durable once a checkpoint
of the leader holds the entry it went with.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from embedding.exchange.compression.halves import widen
from embedding.exchange.protocol import VocabularyDelta
from embedding.kernel.config import part_of
from embedding.kernel.errors import ConfigError, ExchangeError, PlatformError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, SnapshotRef, Table, Window
from embedding.server.grouping import LeaderLink
from embedding.server.parts import Moment
from embedding.server.state import ServerState
from embedding.server.status import node_status
from yeoron_lab.groups.client import LeaderClient, RemoteChanges, Seen
from yeoron_lab.groups.leader import PAUSE_S, Leader, LeadersWords
from yeoron_lab.groups.replica import ReplicaRows
from yeoron_lab.groups.taking import Cut, Taken, compose, drained
from yeoron_lab.settings import GroupSettings

logger = logging.getLogger(__name__)

GROUP_START_S = 120.0
"""How long a group waits at its start for a leader that is away."""
_STOP_S = 30.0
COUNTS_S = 10.0
"""How old the counts of words may get while no word comes or goes."""
ROWS = 16_384
"""Rows that are fetched at a time, at most; they take half of a message, at most."""

_NODE_FIGURES = ("rows_in", "rows_out", "bytes_in", "bytes_out")
"""What a server group tells of its nodes' rows and bytes, each as `node_…`."""


class GroupLink(LeaderLink):
    """Keeps one replica and its leader up to date with each other, one exchange at a time.

    An entry that was taken is sent until the leader has it, before another is taken: what was
    taken of rows may not be at the leader yet, so that nothing is adopted over it.

    state      whose upstream is `leader`
    failed     why the group cannot go on, None while it can
    on_failed  called then
    lock       of an exchange
    exchanges  that came to their end
    """

    def __init__(
        self,
        state: ServerState,
        leader: Leader,
        on_failed: Callable[[], None] = lambda: None,
    ) -> None:
        self.state, self._leader = state, leader
        self._rows = ReplicaRows(state.tables, state.vocabulary, state.lock)
        self.failed: str | None = None
        self._on_failed = on_failed
        self._group = part_of(state.config, GroupSettings).group
        self._stop, self._wake = leader.stopping, threading.Event()
        self._thread = threading.Thread(target=self._run, name="group-link", daemon=True)
        self.lock = threading.Lock()
        self.exchanges = self._rows_out = self._rows_in = 0
        self._groups = 1  # whose rows the leader adds up
        # What the leader hears of the group and of its nodes, and when that was so.
        self._about: dict[str, Any] = {"nodes": {}, "figures": {}}
        self._taken_at = time.monotonic()
        self._sequence = 0  # of the last entry that was taken
        self._asks: dict[str, Any] = {}
        self._version, self._counted_at = 0, 0.0
        self._half = self._group.rows == "float16"
        self._most_rows = max(1, min(ROWS, state.config.max_message_bytes // (8 * state.dim)))
        self._seen: Seen | None = None
        self._cut: Cut | None = None
        self._under_way: Taken | None = None
        # By entry up to which pushes the leader has with it, by node; no checkpoint holds these.
        self._unconfirmed: list[tuple[int, dict[str, int]]] = []
        self._wanted, self._asked = False, 0

    @property
    def client(self) -> LeaderClient:
        return self._leader.client

    def start(self) -> None:
        """Greet the leader and become its replica; PlatformError when it is not there in time."""
        deadline = time.monotonic() + GROUP_START_S
        while True:
            try:
                self.join()
                return
            except UnavailableError as error:
                if time.monotonic() > deadline or self._stop.wait(PAUSE_S):
                    raise PlatformError(f"group.leader: {error}") from error

    def join(self) -> None:
        """As `start`, tried once.

        ConfigError when it is of another model, UnavailableError while it is away.
        """
        welcome = self._leader.greet()
        if welcome.dim != self.state.dim:
            raise ConfigError(
                f"group.leader: its rows have {welcome.dim} columns, this server's "
                f"{self.state.dim}; start both with the same model."
            )
        self._sequence = welcome.sequence
        self._adopt_changes()

    def opened(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Tell the leader what it has not heard yet, then say goodbye; of a start that failed,
        hang up without a word."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)
        try:
            if self.failed is None and self._thread.ident is not None:
                self.exchange()
        except ExchangeError as error:
            logger.warning("group %s: the leader was not told all: %s", self._group.name, error)
        finally:
            self.client.close()

    def checkpoint(self, *, wait: bool) -> None:
        """Have everything so far in a checkpoint of the leader; UnavailableError when it is away.

        wait  it is there on return; else it happens soon
        """
        if not wait:
            self._wanted = True
            self._wake.set()
            return
        self._tell_all()
        self.client.checkpoint(wait=True)
        self._confirm(self.client.durable())

    def fence(self, node: str, incarnation: str) -> None:
        """Have the leader remember that an incarnation of a node is fenced: the group keeps
        nothing.
        """
        self.client.fence(node, incarnation)

    def cut(self, window: Window) -> SnapshotRef:
        """Have the leader cut a window, with what this group has read until now."""
        self._tell_all()
        return self.client.cut(window)

    def _tell_all(self) -> None:
        """Tell the leader all that was pushed until now."""
        if not self.exchange():
            self.exchange()

    def exchange(self) -> bool:
        """Tell the leader what moved and was read, and adopt what others changed.

        False: what was sent had been taken before, by an exchange that came to no end.
        """
        with self.lock:
            fresh = self._under_way is None and self._cut is None
            if self._under_way is None:
                self._under_way = self._take()
            if self._under_way is not None:
                with self._asking():
                    self.client.send(self._under_way.entry)
            self._adopt_changes()
            self.exchanges += 1
            return fresh

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(PAUSE_S if self._leader.away else self._group.every_s)
            self._wake.clear()
            if self._stop.is_set():
                break
            try:
                self.exchange()
                if self._wanted:
                    self._wanted, self._asked = False, self._sequence
                    with self._asking():
                        self.client.checkpoint(wait=False)
            except UnavailableError as error:
                logger.debug("group %s: %s", self._group.name, error)
            except Exception as error:
                logger.exception("group %s cannot go on", self._group.name)
                self.failed = f"group {self._group.name} cannot go on: {error}"
                self._on_failed()
                return

    def asks(self, node: str) -> list[Any]:
        """What the leader asks a node to hand in."""
        asks: list[Any] = self._asks.get(node, [])
        return asks

    def describe(self) -> dict[str, Any]:
        """The group's own part of the status."""
        with self.state.lock:
            waiting, rows = self._leader.untold_pushes, len(self._rows)
        return {
            "group": self._group.name,
            "leader": self._group.leader,
            "state": "failed" if self.failed else "away" if self._leader.away else "up",
            "reason": self.failed,
            "lag_s": time.monotonic() - self._taken_at,
            "waiting_pushes": waiting,
            "waiting_rows": rows,
            "exchanges": self.exchanges,
            "unconfirmed": len(self.client.log),
            "rows_out": self._rows_out,
            "rows_in": self._rows_in,
            "bytes_out": self.client.bytes_sent,
            "bytes_in": self.client.bytes_received,
            "groups": self._groups,
        }

    def ailing(self) -> list[str]:
        """Why the group does not do all of its work."""
        if self.failed is not None:
            return [self.failed]
        if self._leader.away:
            return [f"the leader of group {self._group.name} is away; it goes on alone."]
        return []

    def _figures(self) -> dict[str, Any]:
        """What the leader hears of the group and of its nodes."""
        own = self.describe()
        names = ("waiting_pushes", "waiting_rows", "exchanges", "unconfirmed")
        figures = {name: own[name] for name in names} | {"every_s": self._group.every_s}
        meters = self.state.meters
        with self.state.lock:
            at = Moment(time.monotonic(), self.state.config.calendar.iso)
            nodes = node_status(self.state, (), at.now)
            departed = sorted(self.state.reports.departed & nodes.keys())
        for name in _NODE_FIGURES:
            figures[f"node_{name}"] = getattr(meters, name)
        return {"nodes": nodes, "figures": figures, "departed": departed}

    def _take(self) -> Taken | None:
        """Everything since the last time, as the next entry; None when nothing was pushed."""
        if self._cut is None:
            # Not before: the leader may not hear of a time up to which it has not got all.
            self._about, self._taken_at = self._figures(), time.monotonic()
        with self.state.lock:
            self.state.changes.check()
            if self._cut is None and self._leader.untold:
                # First the moves: what there is no memory for is tried again.
                moves = self._rows.take()
                pushes, digests = self._leader.take()
                self._cut = Cut(pushes, digests, tuple(drained(self.state.scores)), moves)
        if self._cut is None:
            return None
        taken = compose(self._cut, self._group, self._sequence + 1, self._groups)
        self._cut = None
        self._sequence += 1
        self.client.keep(taken.entry)
        self._sent({part.node: part.sequence for part in taken.entry.pushes})
        self._rows_out += sum(len(delta.ids) for delta in taken.entry.rows)
        return taken

    def _adopt_changes(self) -> None:
        """Ask what changed, and have it here."""
        changes = self._changes()
        self._groups, self._asks = changes.groups, changes.asks
        if self._seen is None:
            self._resume(changes)
        self._follow_words(changes)
        for table, ids in changes.ids.items():
            for at in range(0, len(ids), self._most_rows):
                some = ids[at : at + self._most_rows]
                self._rows_in += self._rows.adopt(table, some, self._live(table, some))
        taken, self._under_way = self._under_way, None
        for table, (ids, rows) in ({} if taken is None else taken.rows).items():
            # Of what the group sent last, rows that nobody else changed are at the leader now.
            alone = ~np.isin(ids, changes.ids.get(table, np.empty(0, dtype=np.int64)))
            self._rows.adopt(table, ids[alone], rows[alone])
        self._seen = changes.seen
        self._confirm(changes.durable)

    def _follow_words(self, changes: RemoteChanges) -> None:
        """Have the words of the leader; they are asked for when they changed, or got old."""
        now = time.monotonic()
        old = not changes.closed and now - self._counted_at > COUNTS_S
        given = changes.next_id > self.state.vocabulary.next_id
        if changes.version != self._version or given or old:
            with self._asking():
                delta = self.client.vocabulary(self._version)
            self._adopt_words(delta, changes)
            self._version, self._counted_at = delta.version, now

    def _adopt_words(self, delta: VocabularyDelta, changes: RemoteChanges) -> None:
        """Have words by the leader's ids, and their counts.

        Ids from `changes.next_id` on may have been given since: of these `delta` may know nothing.
        """
        state, vocabulary, next_id = self.state, self.state.vocabulary, changes.next_id
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

    def _resume(self, changes: RemoteChanges) -> None:
        """Go on where the leader's tables are: up to which push of each node. A node keeps what
        no checkpoint of the leader holds."""
        ledger = self.state.ledger
        with self.state.changed:
            for node, incarnations in changes.fences.items():
                ledger.fences.incarnations[node] = tuple(incarnations)
            for at in changes.nodes:
                ledger.restore(at.node, at.sequence, at.tokens, at.offset)
                ledger.of(at.node).durable = at.durable
        reached = {at.node: at.sequence for at in changes.nodes}
        self._sent(reached)

    def _changes(self) -> RemoteChanges:
        about = {**self._about, "age_s": time.monotonic() - self._taken_at}
        with self._asking():
            return self.client.changes(self._seen, about)

    def _live(self, table: Table, ids: IntArray) -> FloatArray:
        with self._asking():
            return widen(self.client.live(table, ids, half=self._half))

    def _sent(self, ends: dict[str, int]) -> None:
        """With the last entry the leader has pushes up to these, by node."""
        self._unconfirmed.append((self._sequence, ends))
        if self.client.log.load > 0.5:
            self._wanted = True

    def _confirm(self, durable: int) -> None:
        """The leader has entries up to `durable` in a checkpoint."""
        with self.state.lock:
            while self._unconfirmed and self._unconfirmed[0][0] <= durable:
                _, ends = self._unconfirmed.pop(0)
                self.state.ledger.persisted(ends)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """What is asked of the leader in here says whether it is away."""
        try:
            yield
        except UnavailableError as error:
            if not self._leader.away:
                logger.warning("group %s: %s Going on alone.", self._group.name, error)
            self._leader.away = True
            if self.client.log.confirmed < self._asked:
                self._wanted = True  # it may have died before it wrote one
            raise
        self._leader.away = False
