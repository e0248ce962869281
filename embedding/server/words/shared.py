"""Counts of a window's texts that several nodes add up before they read it once more."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from embedding.exchange.codec import check, from_message, to_message
from embedding.exchange.textcounts import (
    READY,
    SEND,
    SHARE_COUNTS,
    WAIT,
    CountsAnswer,
    ShareCounts,
    TextCounts,
    added_up,
)
from embedding.exchange.wire import Message
from embedding.server.parts import Part

_KEPT = 4
"""Windows, the latest: those that can be amended are among them."""


@dataclass
class _Window:
    """given: counts by node; fixed: those of the sum; None: somebody has yet to hand in."""

    given: dict[str, TextCounts] = field(default_factory=dict)
    fixed: tuple[TextCounts, ...] | None = None


class SharedCounts(Part):
    """Not thread-safe: the server's lock guards it.

    Each node hands its counts in when it has read a window, and waits with reading its documents
    once more until the others have, too. The sum is fixed then: whoever reads documents of this
    window again reads them by the same vectors. Who dies is waited for no longer.

    The state is in memory alone: after a restart the nodes that have a sum bring it back.
    """

    def __init__(self) -> None:
        self._windows: dict[int, _Window] = {}

    def calls(self, stream: Any) -> dict[str, Callable[[Message], Message]]:
        return {SHARE_COUNTS: partial(self._share, stream)}

    def _share(self, stream: Any, message: Message) -> Message:
        """What a node is to do before it reads a window, and the sum if it is to take that."""
        asked, state, node = from_message(ShareCounts, message), stream.state, stream.node
        check(asked, SHARE_COUNTS)
        window, nodes, counts = asked.window, asked.nodes, asked.counts
        with state.lock:
            accounts, tracker = state.accounts, state.accounts.tracker
            if asked.summed:
                self.fix(window, counts)
                return Message({"status": "ok"})
            readers = accounts.readers.of_window(window)
            present = state.present() | tracker.expected
            # One that has yet to come back to a restarted server may have read by a sum already.
            away = accounts.readers.away(window) & present
            if nodes:
                # Those of a corpus come to the end of a window, and one that never came has no
                # name.
                behind = tracker.behind(window, present - {node})
                unknown = set() if len({node, *state.ledger.nodes}) >= nodes else {""}
                readers = awaited = behind | unknown | away
            else:
                awaited = {*state.wait([window]).readers, *away}
            answer, parts = self.answer(window, node, counts, readers, awaited)
        total = added_up(parts, state.config.max_message_bytes) if parts else None
        return to_message(CountsAnswer(answer, total), status="ok")

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
        shared = self._of(window)
        if shared.fixed is None:
            if counts is not None:
                shared.given[node] = counts
            if {*readers, *shared.given} <= {node}:
                shared.fixed = ()
            elif node not in shared.given:
                return SEND, ()
            elif not shared.given.keys() >= set(awaited):
                return WAIT, ()
            else:
                shared.fixed = tuple(counts for _, counts in sorted(shared.given.items()))
            shared.given.clear()
        return READY, shared.fixed

    def fix(self, window: int, total: TextCounts | None) -> None:
        """A node has read a window by this sum; None: by its own counts, as nobody else read it."""
        shared = self._of(window)
        if shared.fixed is None:
            shared.fixed = () if total is None else (total,)
            shared.given.clear()

    def _of(self, window: int) -> _Window:
        shared = self._windows.setdefault(window, _Window())
        for old in sorted(self._windows)[:-_KEPT]:
            del self._windows[old]
        return shared
