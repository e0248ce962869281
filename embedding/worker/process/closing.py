"""Which window a node reads once more, for comparing how words were used in it."""

from __future__ import annotations

from embedding.worker.learning.ticks import Close


class Closings:
    """Of a node; `reads`: whether it reads any window again.

    A stream's window is read once more when the server says that it is complete.
    """

    def __init__(self, *, reads: bool) -> None:
        self._reads = reads
        self._complete: int | None = None
        self._given: int | None = None
        self._acknowledged: int | None = None

    def complete(self, window: int | None) -> None:
        """The latest window that the server waits for; None: none."""
        self._complete = window

    def due(self, unconverged: int | None) -> Close | None:
        """The window of a stream to read now, before `unconverged`, which is still rehearsed."""
        window, given = self._complete, self._given
        if not self._reads or window is None or (given is not None and given >= window):
            return None
        return None if unconverged is not None and unconverged <= window else Close(window)

    def give(self, close: Close) -> Close:
        """It is read now, and not again: the next tick is asked for before this one has begun."""
        self._given = close.window
        return close

    def of_corpus(self, window: int | None, until: int | None) -> Close | None:
        """The window of a corpus that is over, to be read now; until: the next one, if any."""
        return Close(window, until) if self._reads and window is not None else None

    def acknowledge(self, window: int) -> None:
        """The server has what was read."""
        self._acknowledged = window

    def go_back(self) -> None:
        """The server refused something: what it has not, is read again."""
        self._given = self._acknowledged

    @property
    def latest(self) -> int | None:
        """The latest window whose second reading the server has; -1: none yet.

        None: this node never reads a window again. The server takes no snapshot before it knows.
        """
        if not self._reads:
            return None
        return -1 if self._acknowledged is None else self._acknowledged
