"""When a node rehearses what it remembers, and when it reads a window once more."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from embedding.exchange.payload import Inherited
from embedding.exchange.protocol import Ask, Welcome
from embedding.kernel.errors import RefusedError
from embedding.snapshots.readability import reference_losses
from embedding.worker.learning.convergence import Convergence, Order
from embedding.worker.learning.ticks import Close
from embedding.worker.spec import NodeSpec


class Rehearsals:
    """A Convergence that several threads use, and the turns that a stream leaves to it.

    share  of a core that the rehearsals of a stream may take; 0: none are made
    plain  its text has no windows, and its pairs have noise words: its loss says what was learnt
    """

    def __init__(
        self, convergence: Convergence, *, share: float, negative: int, plain: bool = False
    ) -> None:
        self.state = convergence
        self._plain = plain
        self._share = share
        self._untrained, self._unigram = reference_losses(negative)
        self._lock = threading.Lock()
        self._asked: deque[float] = deque()
        self._over = self._rest_until = 0.0

    @property
    def unconverged(self) -> int | None:
        """The first window that is to be rehearsed still; None: none."""
        with self._lock:
            return self.state.unconverged

    def read(self, window: int, tokens: int) -> None:
        with self._lock:
            self.state.read(window, tokens)

    def end(self, remembered: int) -> None:
        with self._lock:
            self.state.end(remembered)

    def order(self) -> Order | None:
        """The next rehearsal of a corpus; None: its window has converged."""
        with self._lock:
            return self.state.order()

    def wait_s(self) -> float:
        """Seconds until a node of a stream may rehearse; infinite where there is nothing to."""
        if not self._share or self.state.converged:
            return math.inf
        return max(0.0, self._rest_until - time.monotonic())

    def take_turn(self) -> Order | None:
        """The next rehearsal of a stream."""
        order = self.order()
        if order is not None:
            self._asked.append(time.monotonic())
        return order

    def learnt(self, order: Order, held_loss: float | None) -> None:
        """A rehearsal is over: rest for as long as its share of a core leaves over."""
        now = time.monotonic()
        if self._asked:
            took = now - max(self._asked.popleft(), self._over)
            self._over = now
            self._rest_until = max(self._rest_until, now) + took * (1.0 / self._share - 1.0)
        with self._lock:
            self.state.measured(held_loss, order.tokens)

    def learnt_fresh(self) -> None:
        self._over = time.monotonic()

    def give_up(self) -> None:
        """What was ordered is not learnt."""
        self._asked.clear()

    def figures(self) -> dict[str, Any]:
        """How far the window under way has come, JSON-safe."""
        state = self.state
        with self._lock:
            return {
                "window": state.window,
                "rehearses": bool(state.passes),
                "unconverged": state.unconverged,
                "converged": state.converged,
                "tokens": state.rehearsed,
                "plain": self._plain,
                "held_out_loss": state.loss,
                "held_out_untrained": self._untrained,
                "held_out_unigram": self._unigram,
            }


_LAST_TICK = 524_288
"""Tokens of a rehearsal of the last window by a node alone: each pulls and pushes most rows."""


def rehearsals_of(spec: NodeSpec, welcome: Welcome) -> Rehearsals:
    """What is rehearsed, where sentences are learnt and nodes are not in lockstep by their sums."""
    corpus = spec.corpus
    learns = spec.model.traits.weighs_sentences and spec.model.traits.draws_noise
    apart = spec.ring is None and spec.relay is None and welcome.split == "rows"
    windows = corpus is None or corpus.window is not None
    turns = corpus is not None or spec.node.rehearsal_share > 0
    passes = spec.node.rehearsal_passes if learns and apart and windows and turns else 0.0
    tick = 8 * spec.node.block_tokens if corpus is not None else 16_384
    negative = spec.model.negative
    # With others a node would learn so much on rows that they have moved since.
    last = _LAST_TICK if corpus is not None and corpus.count == 1 else tick
    convergence = Convergence(passes, tick, reference_losses(negative)[1], last)
    plain = not windows and spec.model.traits.draws_noise
    return Rehearsals(convergence, share=spec.node.rehearsal_share, negative=negative, plain=plain)


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

    seen      documents of a window that were read
    inherits  whose text else it has read
    ready     whether the other nodes of the stream let it read a window now
    """

    def __init__(
        self,
        *,
        seen: Callable[[int], int] = lambda _: 0,
        inherits: Inherits = lambda _: (),
        ready: Callable[[Ask, Sequence[Inherited]], bool] = lambda *_: True,
    ) -> None:
        self._seen = seen
        self._inherits = inherits
        self._ready = ready
        self._asks: Sequence[Ask] = ()
        self._given: dict[int, _Given] = {}

    def asked(self, asks: Sequence[Ask]) -> None:
        self._asks = asks

    def due(self, unconverged: int | None) -> Close | None:
        """The window of a stream to read now; before it is learnt to the end only when the server
        waits for that no longer.

        unconverged  the first window that is still rehearsed
        """
        for ask in self._asks:
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
        known = {(text.incarnation, text.source): text for text in given.inherited}
        known |= {(text.incarnation, text.source): text for text in inherited}
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
