"""A group's exchange with its leader: a thread that tells and asks every so often."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from embedding.kernel.errors import ExchangeError, PlatformError, UnavailableError
from embedding.kernel.records import SnapshotRef, Window
from embedding.server.figures.reports import total
from embedding.server.parts import Moment
from embedding.server.state import ServerState
from embedding.server.status import node_status
from yeoron_lab.groups.client import LeaderClient
from yeoron_lab.groups.cycle import Confirmations, ExchangeCycle
from yeoron_lab.groups.leader import PAUSE_S, Leader
from yeoron_lab.groups.replica import ReplicaRows

logger = logging.getLogger(__name__)

GROUP_START_S = 120.0
"""How long a group waits at its start for a leader that is away."""
_STOP_S = 30.0

_NODE_FIGURES = ("rows_in", "rows_out", "bytes_in", "bytes_out")
"""What a server group tells of its nodes' rows and bytes, each as `node_…`."""


class GroupLink:
    """Keeps one replica and its leader up to date with each other.

    state      whose upstream is `leader`, and whose rows are `rows`
    failed     why the group cannot go on, None while it can
    on_failed  called then
    cycle      one exchange
    """

    def __init__(
        self,
        state: ServerState,
        leader: Leader,
        rows: ReplicaRows,
        on_failed: Callable[[], None] = lambda: None,
    ) -> None:
        self.state, self._leader, self._rows = state, leader, rows
        self.failed: str | None = None
        self._on_failed = on_failed
        self._group = self.state.config.group
        self._stop = self._leader.stopping
        self._wake = threading.Event()
        self.confirmations = Confirmations(self.state, self._leader, self._wake)
        self.cycle = ExchangeCycle(state, leader, rows, self.confirmations)
        self._thread = threading.Thread(target=self._run, name="group-link", daemon=True)
        rows.when_lacking(self._wake.set)

    @property
    def client(self) -> LeaderClient:
        return self._leader.client

    def begin(self) -> None:
        """Greet the leader and become its replica; PlatformError when it is not there in time."""
        deadline = time.monotonic() + GROUP_START_S
        while True:
            try:
                self.cycle.begin()
                break
            except UnavailableError as error:
                if time.monotonic() > deadline or self._stop.wait(PAUSE_S):
                    raise PlatformError(f"group.leader: {error}") from error

    def start(self) -> None:
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

    def close(self) -> None:
        self.client.close()

    def checkpoint(self, *, wait: bool) -> None:
        """Have everything so far in a checkpoint of the leader; UnavailableError when it is away.

        wait  it is there on return; else it happens soon
        """
        if not wait:
            self.confirmations.want()
            return
        self._tell_all()
        self.client.checkpoint(wait=True)
        self.confirmations.confirm(self.client.durable())

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
        with self.cycle.lock:
            fresh = self.cycle.takes
            self.cycle.run(self._about() if fresh else None)
            return fresh

    def _run(self) -> None:
        while not self._stop.is_set():
            hurt = self._leader.away or self._rows.lacking
            self._wake.wait(PAUSE_S if hurt else self._group.every_s)
            self._wake.clear()
            if self._stop.is_set():
                break
            try:
                self.exchange()
                self.confirmations.tend(self.cycle.sequence)
            except UnavailableError as error:
                logger.debug("group %s: %s", self._group.name, error)
            except Exception as error:
                logger.exception("group %s cannot go on", self._group.name)
                self.failed = f"group {self._group.name} cannot go on: {error}"
                self._on_failed()
                return

    def asks(self, node: str) -> list[Any]:
        """What the leader asks a node to hand in."""
        found: list[Any] = self.cycle.asks.get(node, [])
        return found

    def describe(self) -> dict[str, Any]:
        """The group's own part of the status."""
        state = "failed" if self.failed else "away" if self._leader.away else "up"
        figures = self.cycle.figures
        with self.state.lock:
            waiting, rows = self._leader.untold_pushes, self._rows.moved
        return {
            "group": self._group.name,
            "leader": self._group.leader,
            "state": state,
            "reason": self.failed,
            "lag_s": figures.age_s,
            "waiting_pushes": waiting,
            "waiting_rows": rows,
            "exchanges": figures.exchanges,
            "unconfirmed": len(self.client.log),
            "rows_out": figures.rows_out,
            "rows_in": figures.rows_in,
            "bytes_out": self.client.bytes.sent,
            "bytes_in": self.client.bytes.received,
            "groups": figures.groups,
        }

    def ailing(self) -> list[str]:
        """Why the group does not do all of its work."""
        if self.failed is not None:
            return [self.failed]
        if self._leader.away:
            return [f"the leader of group {self._group.name} is away; it goes on alone."]
        return []

    def _about(self) -> dict[str, Any]:
        """What the leader hears of the group and of its nodes."""
        own = self.describe()
        kept = ("waiting_pushes", "waiting_rows", "exchanges", "unconfirmed")
        figures = {name: own[name] for name in kept} | {"every_s": self._group.every_s}
        meters = self.state.meters
        with self.state.lock:
            at = Moment(time.monotonic(), self.state.config.calendar.iso)
            nodes = node_status(self.state, (), at.now)
            departed = sorted(self.state.reports.departed & nodes.keys())
            shards = self.state.rows.describe(at)["shards"]
        for name in _NODE_FIGURES:
            figures[f"told_{name}"] = own[name]
            figures[f"node_{name}"] = getattr(meters, name) + total(shards, name)
        return {"nodes": nodes, "figures": figures, "departed": departed}
