"""Where a node stands with its server: its clock, its last push, and the pace of the policy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from embedding.exchange.protocol import Ack, PulledRows, Push, Welcome
from embedding.kernel.records import Calendar
from embedding.models.config import ModelConfig
from embedding.worker.config import NodeConfig
from embedding.worker.crawling.unacknowledged import Unacknowledged


@dataclass(frozen=True)
class LearnerSetup:
    """Settings of a learner.

    calendar    of the windows that its counts are booked in
    most_bytes  of the use of words that one push carries; the rest goes ahead of it
    incarnation  mark of the process, where it hands in how it used words
    """

    node: str
    model: ModelConfig
    config: NodeConfig
    calendar: Calendar
    most_bytes: int = 32 * 2**20
    incarnation: str = ""


class PushStopwatch:
    """Runs from push to push; waiting for text counts, waiting for other nodes does not."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._held = 0.0

    def start(self) -> None:
        self._began, self._held = time.monotonic(), 0.0

    def held(self, rows: PulledRows, before: float = 0.0) -> None:
        """A pull was held back, and for `before` seconds by a round of L-BFGS."""
        self._held += before + rows.waited_s

    def busy(self) -> float:
        """Seconds since the last push, less those held back; 0 before the first push.

        The first stretch is not measured: kernels are compiled in it.
        """
        if self._began is None:
            return 0.0
        return max(time.monotonic() - self._began - self._held, 1e-3)


class NodeClock:
    """Follows what the server answers.

    A block is prepared at a clock of its own, which runs ahead of the pushes: the block after one
    that is not pushed yet is one clock further on (`prepared`).

    clock        at which the node goes on; sequence: its last push
    unacknowledged  documents that the frontier has not marked as done; None for a corpus
    """

    def __init__(
        self,
        welcome: Welcome,
        unacknowledged: Unacknowledged | None = None,
        stopwatch: PushStopwatch | None = None,
    ) -> None:
        self.clock, self.sequence = welcome.clock, welcome.sequence
        self.pace, self.active = welcome.pace, welcome.active
        self.unacknowledged = unacknowledged
        self.stopwatch = stopwatch or PushStopwatch()
        self._offset = welcome.offset
        self._at = 0

    @property
    def pooled(self) -> int:
        return self.pace.pooled or self.active

    def next(self, *, alone: bool) -> int:
        """The clock of the block that is prepared now; `alone`: the one before it is pushed."""
        self._at = self.clock - 1 if alone else self._at
        return self._at + 1

    def prepared(self, clock: int) -> None:
        """A block has come so far; others go on while this node has nothing to learn."""
        self._at = max(self._at, clock)

    def push(self, push: Push, keys: Sequence[str]) -> Push:
        """The next push, with this node's offset and time; keys: of its documents."""
        # What is learnt again is read nowhere: the reader goes on where it was.
        self._offset = push.offset or self._offset
        offset = self._offset
        if self.unacknowledged is not None:
            offset = self.unacknowledged.offset(keys)
        sequence = self.sequence + 1
        return replace(push, sequence=sequence, offset=offset, busy_s=self.stopwatch.busy())

    def pushed(self, keys: Sequence[str], ack: Ack) -> None:
        """The server has taken the push after `sequence`."""
        self.stopwatch.start()
        self.sequence += 1
        if self.unacknowledged is not None:
            self.unacknowledged.pushed(self.sequence, keys)
        self.clock, self.active, self.pace = ack.clock, ack.active, ack.pace

    def flushed(self, ack: Ack) -> None:
        """The client has pushed what compression kept back."""
        self.clock, self.sequence = ack.clock, ack.sequence

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands."""
        self.clock, self.sequence = clock, sequence
        self._at = clock - 1
