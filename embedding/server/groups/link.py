"""A group's exchange with its leader: a thread that tells and asks every so often."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from embedding.exchange.compression.halves import widen
from embedding.exchange.groups.client import LeaderClient, RemoteChanges, Seen
from embedding.kernel.errors import ExchangeError, PlatformError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, SnapshotRef, Table, Window
from embedding.server.figures.transports import NODE_FIGURES
from embedding.server.groups.following import Follower
from embedding.server.groups.leader import PAUSE_S
from embedding.server.groups.taking import Taken
from embedding.server.status import build_status

logger = logging.getLogger(__name__)

GROUP_START_S = 120.0
"""How long a group waits at its start for a leader that is away."""
_STOP_S = 30.0
COUNTS_S = 10.0
"""How old the counts of words may get while no word comes or goes."""
ROWS = 16_384
"""Rows that are fetched at a time, at most; they take half of a message, at most."""


class GroupLink:
    """Keeps one replica and its leader up to date with each other.

    failed     why the group cannot go on, None while it can
    on_failed  called then
    """

    def __init__(self, follower: Follower, on_failed: Callable[[], None] = lambda: None) -> None:
        self._follower, self._leader = follower, follower.leader
        self.state = follower.state
        self.failed: str | None = None
        self._on_failed = on_failed
        config = self.state.config
        self._group, self._shards = config.group, config.shards
        self._stop = self._leader.stopping
        self._half = config.group.rows == "float16"
        self._rows = max(1, min(ROWS, config.max_message_bytes // (8 * self.state.dim)))
        self._seen: Seen = ()
        self._groups = 1
        self._sequence = 0
        self._unsettled: Taken | None = None
        self._told: list[tuple[int, dict[str, int]]] = []
        self._version, self._counted_at = 0, 0.0
        self._taken_at = time.monotonic()
        self._figures: dict[str, Any] = {"nodes": {}, "figures": {}}
        self._exchanges = self._rows_out = self._rows_in = 0
        self._cycle = threading.Lock()
        self._wake = threading.Event()
        self._wants_checkpoint = False
        self._asked = 0
        self._thread = threading.Thread(target=self._run, name="group-link", daemon=True)
        follower.rows.when_lacking(self._wake.set)

    @property
    def client(self) -> LeaderClient:
        """Speaks with the leader."""
        return self._leader.client

    def begin(self) -> None:
        """Greet the leader and become its replica; PlatformError when it is not there in time."""
        deadline = time.monotonic() + GROUP_START_S
        while True:
            try:
                self._sequence = self._follower.greet().sequence
                self._pull()
                break
            except UnavailableError as error:
                if time.monotonic() > deadline or self._stop.wait(PAUSE_S):
                    raise PlatformError(f"group.leader: {error}") from error

    def start(self) -> None:
        """Begin to exchange every so often."""
        self._thread.start()

    def stop(self) -> None:
        """Tell the leader what it has not heard yet, then say goodbye."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)
        try:
            if self.failed is None:
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
            self._want()
            return
        self._tell_all()
        self.client.calls.checkpoint(wait=True)
        self._confirm(self.client.durable())

    def fence(self, node: str, incarnation: str) -> None:
        """Have the leader remember that an incarnation of a node is fenced: the group keeps
        nothing.
        """
        self.client.calls.fence(node, incarnation)

    def cut(self, window: Window) -> SnapshotRef:
        """Have the leader cut a window, with what this group has read until now."""
        self._tell_all()
        return self.client.calls.cut(window)

    def _tell_all(self) -> None:
        """Tell the leader all that was pushed until now."""
        if not self.exchange():
            self.exchange()

    def exchange(self) -> bool:
        """Tell the leader what moved and was read, and adopt what others changed.

        False: what was told had been taken before, by an exchange that came to no end.
        """
        with self._cycle:
            fresh = self._unsettled is None and not self._follower.cutting
            if self._unsettled is None:
                if self._follower.rows.lacking:
                    # What moved cannot be told before. Other rows stay as they are: what was
                    # taken of them may not be at the leader yet.
                    self._changes()
                    self._follower.rows.mend(self._live)
                self._unsettled = self._take()
            taken = self._unsettled
            if taken is not None:
                with self._asking():
                    self.client.merge(taken.entry)
                self._follower.rows.merged()
            self._pull()
            self._exchanges += 1
            return fresh

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """What is asked of the leader in here says whether it is away."""
        try:
            yield
        except UnavailableError as error:
            if not self._leader.away:
                logger.warning("group %s: %s Going on alone.", self._group.name, error)
            self._leader.away = True
            if self.client.entries.confirmed < self._asked:
                self._wants_checkpoint = True  # it may have died before it wrote one
            raise
        self._leader.away = False

    def _take(self) -> Taken | None:
        if not self._follower.cutting:
            self._taken_at = time.monotonic()
            self._figures = self._about()
        taken = self._follower.take(self._sequence + 1, self._groups)
        if taken is None:
            return None
        self._sequence += 1
        self.client.keep(taken.entry)
        ends = {part.node: part.sequence for part in taken.entry.parts}
        self._told.append((self._sequence, ends))
        self._rows_out += sum(len(delta.ids) for delta in taken.entry.rows)
        if self.client.entries.load > 0.5:
            self._wants_checkpoint = True
        return taken

    def _pull(self) -> RemoteChanges:
        """Ask what changed, and have it here."""
        changes = self._changes()
        self._groups = changes.groups
        if not self._seen:
            self._follower.resume(changes)
            reached = {node: at.sequence for node, at in changes.nodes.items()}
            self._told.append((self._sequence, reached))
        self._follow_words(changes)
        mended = self._follower.rows.mend(self._live)  # these have all rows by now
        for table, ids in changes.ids.items():
            rest = ids[~np.isin(ids % self._shards, mended)]
            for at in range(0, len(rest), self._rows):
                self._adopt(table, rest[at : at + self._rows])
        self._settle(changes)
        self._seen = changes.seen
        self._confirm(changes.durable)
        return changes

    def _changes(self) -> RemoteChanges:
        told = {
            "nodes": self._figures["nodes"],
            "figures": self._figures["figures"],
            "age_s": time.monotonic() - self._taken_at,
        }
        with self._asking():
            return self.client.changes(self._seen, told)

    def _follow_words(self, changes: RemoteChanges) -> None:
        now = time.monotonic()
        old = not changes.closed and now - self._counted_at > COUNTS_S
        given = changes.next_id > self.state.vocabulary.next_id
        if changes.version != self._version or given or old:
            with self._asking():
                delta = self.client.calls.vocabulary(self._version)
            self._follower.follow_words(delta, changes.next_id, closed=changes.closed)
            self._version, self._counted_at = delta.version, now
        self._follower.follow_ids(changes.next_id)

    def _adopt(self, table: Table, ids: IntArray) -> None:
        self._rows_in += self._follower.rows.adopt(table, ids, self._live(table, ids))

    def _live(self, table: Table, ids: IntArray) -> FloatArray:
        """Rows as the leader has them now."""
        with self._asking():
            return widen(self.client.live(table, ids, half=self._half))

    def _settle(self, changes: RemoteChanges) -> None:
        """Of what the group told last, rows that nobody else changed are at the leader now."""
        taken, self._unsettled = self._unsettled, None
        if taken is None:
            return
        for table, (ids, rows) in taken.rows.items():
            alone = ~np.isin(ids, changes.ids.get(table, np.empty(0, dtype=np.int64)))
            self._follower.rows.adopt(table, ids[alone], rows[alone])

    def _confirm(self, durable: int) -> None:
        """The leader has entries up to `durable` in a checkpoint."""
        with self.state.lock:
            while self._told and self._told[0][0] <= durable:
                _, ends = self._told.pop(0)
                self.state.ledger.persisted(ends)

    def _want(self) -> None:
        self._wants_checkpoint = True
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            hurt = self._leader.away or self._follower.rows.lacking
            self._wake.wait(PAUSE_S if hurt else self._group.every_s)
            self._wake.clear()
            if self._stop.is_set():
                break
            try:
                self.exchange()
                if self._wants_checkpoint:
                    self._wants_checkpoint, self._asked = False, self._sequence
                    with self._asking():
                        self.client.calls.checkpoint(wait=False)
            except UnavailableError as error:
                logger.debug("group %s: %s", self._group.name, error)
            except Exception as error:
                logger.exception("group %s cannot go on", self._group.name)
                self.failed = f"group {self._group.name} cannot go on: {error}"
                self._on_failed()
                return

    def describe(self) -> dict[str, Any]:
        """The group's own part of the status."""
        state = "failed" if self.failed else "away" if self._leader.away else "up"
        with self.state.lock:
            waiting, rows = self._leader.untold_pushes, self._follower.rows.moved
        return {
            "group": self._group.name,
            "leader": self._group.leader,
            "state": state,
            "reason": self.failed,
            "lag_s": time.monotonic() - self._taken_at,
            "waiting_pushes": waiting,
            "waiting_rows": rows,
            "exchanges": self._exchanges,
            "unconfirmed": len(self.client.entries),
            "rows_out": self._rows_out,
            "rows_in": self._rows_in,
            "bytes_out": self.client.bytes.sent,
            "bytes_in": self.client.bytes.received,
            "groups": self._groups,
        }

    def ailing(self) -> list[str]:
        """Why the group does not do all of its work."""
        if self.failed is not None:
            return [self.failed]
        if self._leader.away:
            return [f"the leader of group {self._group.name} is away; it goes on alone."]
        return []

    def _about(self) -> dict[str, Any]:
        """What the leader is told of the group and of its nodes."""
        status = build_status(self.state, [])
        own = self.describe()
        kept = ("waiting_pushes", "waiting_rows", "exchanges", "unconfirmed")
        figures = {name: own[name] for name in kept} | {"every_s": self._group.every_s}
        meters = self.state.meters
        shards = self.state.rows.describe()
        for name in NODE_FIGURES:
            figures[f"told_{name}"] = own[name]
            there = sum(int(shard.get(name) or 0) for shard in shards)
            figures[f"node_{name}"] = getattr(meters, name) + there
        return {"nodes": status["nodes"], "figures": figures}
