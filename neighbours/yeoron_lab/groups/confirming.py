"""Which entries of a group are in no checkpoint of its leader, and when one is asked for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from embedding.kernel.errors import UnavailableError
from embedding.server.state import ServerState
from yeoron_lab.groups.leader import Leader

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
        if self._leader.client.entries.load > 0.5:
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
            if self._leader.client.entries.confirmed < self._asked:
                self._wanted = True  # it may have died before it wrote one
            raise
        self._leader.away = False
