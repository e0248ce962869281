"""What the nodes of a stream counted in their texts of a window, until all of them have.

Each node hands its counts in when the server asks for how it used words, and waits with reading its
documents until the others have, too. The sum is fixed then: whoever reads documents of this window
again reads them by the same vectors. Who dies is waited for no longer.

The state is in memory alone: after a restart the sum is that of nodes that have yet to hand in.
"""

from __future__ import annotations

from collections.abc import Collection

from embedding.exchange.textcounts import OWN, READY, SEND, WAIT, TextCounts

_KEPT = 4
"""Windows, the latest: those that can be amended are among them."""


class SharedCounts:
    """Not thread-safe: the server's lock guards it."""

    def __init__(self) -> None:
        self._given: dict[int, dict[str, TextCounts]] = {}
        self._fixed: dict[int, tuple[TextCounts, ...]] = {}

    def hand_in(self, window: int, node: str, counts: TextCounts) -> None:
        """Take the counts of a node in place of what it handed in before."""
        self._of(window)[node] = counts

    def answer(
        self, window: int, node: str, readers: Collection[str], awaited: Collection[str]
    ) -> tuple[str, tuple[TextCounts, ...]]:
        """What a node is to do, and with READY the parts of the sum.

        readers  those that read text of the window; awaited: those that have yet to say how it used
                 words
        """
        given = self._of(window)
        if window not in self._fixed:
            if {*readers, *given} <= {node}:
                self._fixed[window] = ()
            elif node not in given:
                return SEND, ()
            elif not given.keys() >= set(awaited):
                return WAIT, ()
            else:
                self._fixed[window] = tuple(given[name] for name in sorted(given))
        return (READY if self._fixed[window] else OWN), self._fixed[window]

    def _of(self, window: int) -> dict[str, TextCounts]:
        """The counts of a window by node; the oldest windows are forgotten."""
        given = self._given.setdefault(window, {})
        for old in sorted(self._given)[:-_KEPT]:
            del self._given[old]
            self._fixed.pop(old, None)
        return given
