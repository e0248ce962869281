"""What nodes counted in their texts of a window, until all of them have.

Each node hands its counts in when it has read a window, and waits with reading its documents once
more until the others have, too. The sum is fixed then: whoever reads documents of this window again
reads them by the same vectors. Who dies is waited for no longer.

The state is in memory alone: after a restart the nodes that have a sum bring it back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from embedding.exchange.textcounts import READY, SEND, WAIT, TextCounts

_KEPT = 4
"""Windows, the latest: those that can be amended are among them."""


@dataclass
class _Window:
    """given: counts by node; fixed: those of the sum; None: somebody has yet to hand in."""

    given: dict[str, TextCounts] = field(default_factory=dict)
    fixed: tuple[TextCounts, ...] | None = None


class SharedCounts:
    """Not thread-safe: the server's lock guards it."""

    def __init__(self) -> None:
        self._windows: dict[int, _Window] = {}

    def answer(
        self,
        window: int,
        node: str,
        counts: TextCounts | None,
        readers: Collection[str],
        awaited: Collection[str],
    ) -> tuple[str, tuple[TextCounts, ...]]:
        """What a node is to do, and with READY the parts of the sum.

        counts   of this node, in place of what it handed in before
        readers  nodes that read text of the window, or may have yet to
        awaited  those of them that are waited for
        """
        one = self._of(window)
        if one.fixed is None:
            if counts is not None:
                one.given[node] = counts
            if {*readers, *one.given} <= {node}:
                one.fixed = ()
            elif node not in one.given:
                return SEND, ()
            elif not one.given.keys() >= set(awaited):
                return WAIT, ()
            else:
                one.fixed = tuple(counts for _, counts in sorted(one.given.items()))
            one.given.clear()
        return READY, one.fixed

    def fix(self, window: int, total: TextCounts | None) -> None:
        """A node has read a window by this sum; None: by its own counts, as nobody else read it."""
        one = self._of(window)
        if one.fixed is None:
            one.fixed = () if total is None else (total,)
            one.given.clear()

    def _of(self, window: int) -> _Window:
        one = self._windows.setdefault(window, _Window())
        for old in sorted(self._windows)[:-_KEPT]:
            del self._windows[old]
        return one
