"""When a node learns again what it remembers, and how far that has come."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import Any

from embedding.exchange.protocol import Welcome
from embedding.snapshots.readability import reference_losses
from embedding.worker.learning.convergence import Convergence, Order
from embedding.worker.spec import NodeSpec


class Rehearsals:
    """A Convergence that several threads use, and the turns that a stream leaves to it.

    share  of a core that the rehearsals of a stream may take; 0: none are made
    """

    def __init__(self, convergence: Convergence, *, share: float, negative: int) -> None:
        self._state = convergence
        self._share = share
        self._untrained, self._unigram = reference_losses(negative)
        self._lock = threading.Lock()
        self._asked: deque[float] = deque()
        self._over = self._rest_until = 0.0

    @property
    def any(self) -> bool:
        """Whether anything is ever rehearsed."""
        return bool(self._state.passes)

    @property
    def window(self) -> int | None:
        """That is under way."""
        return self._state.window

    @property
    def unconverged(self) -> int | None:
        """The first window that is to be rehearsed still; None: none."""
        with self._lock:
            return self._state.unconverged

    def read(self, window: int, tokens: int) -> None:
        """Fresh tokens of a window are learnt now."""
        with self._lock:
            self._state.read(window, tokens)

    def end(self, remembered: int) -> None:
        """No more text comes of a corpus; so many tokens of it are remembered."""
        with self._lock:
            self._state.end(remembered)

    def order(self) -> Order | None:
        """The next rehearsal of a corpus; None: its window has converged."""
        with self._lock:
            return self._state.order()

    def wait_s(self) -> float:
        """Seconds until a node of a stream may rehearse; infinite where there is nothing to."""
        if not self._share or self._state.converged:
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
            self._state.measured(held_loss, order.tokens)

    def learnt_fresh(self) -> None:
        """A tick of fresh text is over: no rehearsal has begun before."""
        self._over = time.monotonic()

    def give_up(self) -> None:
        """What was ordered is not learnt."""
        self._asked.clear()

    def figures(self) -> dict[str, Any]:
        """How far the window under way has come, JSON-safe."""
        state = self._state
        with self._lock:
            return {
                "window": state.window,
                "rehearses": bool(state.passes),
                "unconverged": state.unconverged,
                "converged": state.converged,
                "tokens": state.rehearsed,
                "held_out_loss": state.loss,
                "held_out_untrained": self._untrained,
                "held_out_unigram": self._unigram,
            }


def rehearsals_of(spec: NodeSpec, welcome: Welcome) -> Rehearsals:
    """What is rehearsed, where sentences are learnt and nodes are not in lockstep by their sums."""
    corpus = spec.corpus
    learns = spec.model.traits.weighs_sentences and spec.model.traits.draws_noise
    apart = spec.ring is None and not spec.aggregator and welcome.split != "columns"
    windows = corpus is None or corpus.window is not None
    turns = corpus is not None or spec.node.rehearsal_share > 0
    passes = spec.node.rehearsal_passes if learns and apart and windows and turns else 0.0
    tick = 8 * spec.node.block_tokens if corpus is not None else 16_384
    negative = spec.model.negative
    convergence = Convergence(passes, tick, reference_losses(negative)[1])
    return Rehearsals(convergence, share=spec.node.rehearsal_share, negative=negative)
