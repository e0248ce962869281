"""Which window a node reads once more, for comparing how words were used in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embedding.exchange.payload import Inherited
from embedding.exchange.protocol import Ask
from embedding.kernel.errors import RefusedError
from embedding.worker.learning.ticks import Close

MOST_REFUSALS = 3
"""Of one window, which the server refuses: then the node ends, and says why."""
_REMEMBERED = 16
"""Windows of which is known what was handed in."""

Inherits = Callable[[Ask], Sequence[Inherited] | None]
"""Whose text a node speaks for in a window that is asked for; None: it has yet to read some of it
again."""


@dataclass
class _Given:
    """What was read of a window when it was handed in last; `tries` since the server took it."""

    documents: int
    inherited: tuple[Inherited, ...]
    tries: int = 1


class Closings:
    """Of a node.

    A window of a stream is read once more when the server asks for it: once, and again when more
    of it was read since.

    reads     whether it reads any window again
    seen      documents of a window that were read
    inherits  whose text else it has read
    ready     whether the other nodes of the stream let it read a window now
    """

    def __init__(
        self,
        *,
        reads: bool,
        seen: Callable[[int], int] = lambda _: 0,
        inherits: Inherits = lambda _: (),
        ready: Callable[[Ask, Sequence[Inherited]], bool] = lambda *_: True,
    ) -> None:
        self._reads = reads
        self._seen = seen
        self._inherits = inherits
        self._ready = ready
        self._asks: Sequence[Ask] = ()
        self._given: dict[int, _Given] = {}

    def asked(self, asks: Sequence[Ask]) -> None:
        """What the server waits for, or could amend."""
        self._asks = asks

    def due(self, unconverged: int | None) -> Close | None:
        """The window of a stream to read now; before it is learnt to the end only when the server
        waits for that no longer.

        unconverged  the first window that is still rehearsed
        """
        for ask in self._asks if self._reads else ():
            rehearsed = unconverged is None or unconverged > ask.window
            if not (rehearsed or ask.overdue) or (close := self._close(ask)) is None:
                continue
            if self._ready(ask, close.inherited):
                return close
        return None

    def _close(self, ask: Ask) -> Close | None:
        inherited = self._inherits(ask)
        if inherited is None:
            return None
        given = self._given.get(ask.window)
        if given is None:
            due = bool(inherited) or self._seen(ask.window) > 0 or not ask.lost
            return Close(ask.window, inherited=tuple(inherited)) if due else None
        # What was spoken for once is so in each later word on the window.
        known = {(one.life, one.source): one for one in given.inherited}
        known |= {(one.life, one.source): one for one in inherited}
        more = tuple(known.values()) != given.inherited or self._seen(ask.window) > given.documents
        again = more or given.documents < 0
        return Close(ask.window, inherited=tuple(known.values())) if again else None

    def give(self, close: Close) -> Close:
        """It is read now, and not again: the next tick is asked for before this one has begun."""
        before = self._given.pop(close.window, None)
        tries = 1 if before is None or before.documents >= 0 else before.tries + 1
        self._given[close.window] = _Given(self._seen(close.window), close.inherited, tries)
        while len(self._given) > _REMEMBERED:
            del self._given[next(iter(self._given))]
        return close

    def go_back(self, refused: RefusedError) -> None:
        """The server refused something: what it may not have is read again; raises `refused` when
        that was tried often enough."""
        for given in self._given.values():
            if given.tries >= MOST_REFUSALS:
                raise refused
            given.documents = -1
