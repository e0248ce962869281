"""How far a shard has carried out its primary's log."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from embedding.kernel.errors import RefusedError
from embedding.server.rowstore.interface import LogPosition
from embedding.server.shards.log import LogEntry


@dataclass
class LogCursor:
    """A place in the log of one incarnation of the primary. The shard's lock guards it.

    number    of that incarnation: positions of another mean nothing here
    position  of the last entry that is in the rows
    durable   of the last one that is in a checkpoint
    queue     entries behind `position`, in order
    given     where rows that came from elsewhere began (`begin_at`)
    """

    number: int = 0
    position: int = 0
    durable: int = 0
    queue: deque[LogEntry] = field(default_factory=deque)
    given: int = 0

    def restart(self, number: int) -> None:
        """The primary was started again, and with it its log."""
        self.number, self.position, self.durable = number, 0, 0
        self.queue.clear()

    def extend(self, number: int, first: int, entries: Sequence[LogEntry], who: str) -> None:
        """Take entries from position `first` on; RefusedError when they leave a gap."""
        expected = self.end + 1
        if number != self.number or first > expected:
            raise RefusedError(
                f"{who}: entries from {first} of log {number}; it expects "
                f"{expected} of log {self.number}."
            )
        # Entries that came before an answer was lost come again and are passed over.
        self.queue.extend(entries[expected - first :])

    @property
    def end(self) -> int:
        """The last position that is here."""
        return self.position + len(self.queue)

    def has_reached(self, at: LogPosition) -> bool:
        """Whether the rows are at this place or behind it."""
        return self.number == at[0] and self.position >= at[1]

    def begin_at(self, at: LogPosition) -> bool:
        """Go on from the place of rows that were given; False: that is not how this shard stands.

        Said again, as when the answer was lost, the later place counts, until the log goes on.
        """
        if at[0] != self.number or self.position not in (0, self.given):
            return False
        self.position = self.given = at[1]
        return True
