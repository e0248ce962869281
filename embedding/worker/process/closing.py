"""Which window a node reads once more, for comparing how words were used in it."""

from __future__ import annotations

from embedding.worker.learning.ticks import Close
from embedding.worker.usage.usage import UsageReader


class Closings:
    """Of a node; `usage` None: it reads none again.

    A stream's window is read once more when the server says that it is complete.
    """

    def __init__(self, usage: UsageReader | None) -> None:
        self._usage = usage
        self._complete: int | None = None
        self._acknowledged: int | None = None

    def complete(self, window: int | None) -> None:
        """The latest window that the server waits for; None: none."""
        self._complete = window

    def due(self, unconverged: int | None) -> Close | None:
        """The window of a stream to read now, before `unconverged`, which is still rehearsed."""
        usage, window = self._usage, self._complete
        if usage is None or window is None or (usage.closed is not None and usage.closed >= window):
            return None
        return None if unconverged is not None and unconverged <= window else Close(window)

    def of_corpus(self, window: int | None, until: int | None) -> Close | None:
        """The window of a corpus that is over, to be read now; until: the next one, if any."""
        return None if self._usage is None or window is None else Close(window, until)

    def acknowledge(self, window: int) -> None:
        """The server has what was read."""
        self._acknowledged = window

    def go_back(self) -> None:
        """The server refused something: what it has not, is read again."""
        if self._usage is not None:
            self._usage.go_back(self._acknowledged)

    @property
    def latest(self) -> int | None:
        """The latest window whose second reading the server has; -1: none yet.

        None: this node never reads a window again. The server takes no snapshot before it knows.
        """
        if self._usage is None:
            return None
        return -1 if self._acknowledged is None else self._acknowledged
