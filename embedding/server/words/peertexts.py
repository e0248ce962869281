"""Who reads a window again where several nodes share a corpus: the last one that leaves it.

Each node hands over what it remembers when it has learnt a window to the end, and goes on. The last
one is given what all of them remember, and reads the window for all, as one node would that had
read the whole corpus (`worker/usage/usage.py`). So nobody waits, and each window is read once.

The state is small and in memory alone: a server that was restarted knows again what a node
remembers when that leaves its next window.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from embedding.exchange.pasttexts import PastDocuments, PastWindows

MOST_TOKENS = 32_000_000
"""Of all nodes together, about 5 bytes each; the oldest windows leave first."""
_BEGIN = -(2**62)
"""Before all windows."""


@dataclass(frozen=True)
class Readers:
    """The nodes of a corpus, as the server knows them.

    count    how many share it
    known    those that ever greeted
    present  those that take part or rest, and the start (Unix seconds) of the window up to which
             each has read
    """

    count: int
    known: Collection[str]
    present: Mapping[str, float]


class PeerTexts:
    """Not thread-safe: the server's lock guards it."""

    def __init__(self, most_tokens: int = MOST_TOKENS) -> None:
        self._most = most_tokens
        self._texts: dict[str, dict[int, list[PastDocuments]]] = {}
        self._left: dict[str, int] = {}
        self._given: dict[int, str] = {}

    @property
    def tokens(self) -> int:
        """Held, of all nodes."""
        return sum(_tokens(held) for held in self._texts.values())

    def leave(
        self,
        node: str,
        window: int,
        until: int,
        texts: PastWindows,
        readers: Readers,
        keep: int,
        closed: Collection[int] = (),
    ) -> list[int]:
        """A node goes on; the windows that it is to read again, as it is the last to leave them.

        window  that it leaves, and `until` the one that it reads next (Unix seconds of the starts)
        texts   what it remembers
        keep    windows that are read with the one that is over
        closed  windows that were read again already
        """
        self._take(node, texts)
        # It may have skipped windows of others, also before its first one.
        first = min(window, self._left.get(node, _BEGIN))
        self._left[node] = until
        self._shorten()
        if len({*readers.known, node}) < readers.count:
            return []
        others = (
            max(self._left.get(each, _BEGIN), reached)
            for each, reached in readers.present.items()
            if each != node
        )
        over = min([until, *others])
        self._forget([start for start in self._starts() if start < over][:-keep])
        due = [
            start
            for start in self._starts()
            if first <= start < over
            and start not in closed
            and self._given.get(start, node) == node
        ]
        self._given.update(dict.fromkeys(due, node))
        return due

    def texts(self, window: int, enough: int) -> dict[int, list[PastDocuments]]:
        """What all nodes remember of a window and of those before, the latest first.

        enough  tokens, from which on no older window is added
        """
        found: dict[int, list[PastDocuments]] = {}
        for start in reversed([start for start in self._starts() if start <= window]):
            if _tokens(found) >= enough:
                break
            found[start] = [
                part for _, held in sorted(self._texts.items()) for part in held.get(start, ())
            ]
        return found

    def _starts(self) -> list[int]:
        """All windows that are held, in order."""
        return sorted({start for held in self._texts.values() for start in held})

    def _take(self, node: str, texts: PastWindows) -> None:
        """Of each window the most that this node ever remembered.

        One that is ahead of the others has forgotten what they still need, and so has a process
        that was started again.
        """
        held = self._texts.setdefault(node, {})
        for start, parts in texts.items():
            if _tokens({start: parts}) >= _tokens({start: held.get(start, ())}):
                held[start] = list(parts)

    def _shorten(self) -> None:
        """Forget the oldest windows until the rest has room."""
        for start in self._starts():
            if self.tokens <= self._most:
                return
            self._forget([start])

    def _forget(self, starts: Collection[int]) -> None:
        for start in starts:
            self._given.pop(start, None)
            for held in self._texts.values():
                held.pop(start, None)


def _tokens(windows: PastWindows) -> int:
    return sum(len(part.ids) for parts in windows.values() for part in parts)
