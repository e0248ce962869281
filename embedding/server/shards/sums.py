"""Pushes of a group of nodes whose rows came added up (aggregators).

Which of two forms a shard applies is decided by the primary's log alone: a sum, when it took the
message that names all of the pushes, or each node's own rows. A node still has its own; so a shard
that lacks a sum, having been started again, adds up what the nodes send it instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from embedding.server.shards.log import Change, PushNumber, ShardLog

Key = tuple[PushNumber, ...]


class LoggedSums:
    """On the primary: writes changes to the log, and which of their pushes came in one sum.

    All pushes of a sum are in one entry, so that no checkpoint of a shard comes between them.
    """

    def __init__(self, log: ShardLog) -> None:
        self._log = log
        self._open: list[Key] = []
        self._gathered: list[Change] | None = None

    def append(self, change: Change) -> None:
        """Write it, or hold it until all pushes of a message were taken."""
        if self._gathered is None:
            self._write(change)
        else:
            self._gathered.append(change)

    @contextmanager
    def together(self, tickets: Key) -> Iterator[None]:
        """These pushes, taken in here, came in one sum."""
        self._open.append(tickets)
        self._gathered = []
        try:
            yield
        finally:
            gathered, self._gathered = self._gathered, None
            for change in _merged(gathered):
                self._write(change)

    def _write(self, change: Change) -> None:
        if self._open:
            named = set(change.tickets)
            sums = tuple(key for key in self._open if named.issuperset(key))
            self._open = [key for key in self._open if named.isdisjoint(key)]
            change = replace(change, sums=sums)
        self._log.append(change)


def _merged(changes: Sequence[Change]) -> list[Change]:
    """One after the other, those that do the same are one."""
    found: list[Change] = []
    for change in changes:
        last = found[-1] if found else None
        if last is None or change.average or replace(change, tickets=last.tickets) != last:
            found.append(change)
        else:
            found[-1] = replace(last, tickets=last.tickets + change.tickets)
    return found
