"""How long a node goes on learning what it has read of a window, and at which rate.

The crawl is slow and text is little: after one pass a model has hardly left its random start. So a
node learns the text of a window again from its replay memory, until text that it does not learn
from is predicted no better. Some sentences are held out of training. L is the mean loss of their
pairs under the tables (`heldout.py`), measured at each rehearsal before it trains.

    budget   passes · fresh · max(fresh / read, 1 / SHORTEST) tokens, for a window of `fresh` tokens
    rate     falls in a straight line, with what is left of the budget, to 0
    a look   each `fresh` tokens, `tick` at least: where the mean of L since the last look is not by
             ENOUGH of itself below the one before, a part (GIVEN_UP) of what is left is given up;
             not while L is above that of a model which knows frequencies alone: it has yet to
             leave its start. Fresh text changes what is held out: looks begin again with it
    a window that another one follows has what is left of its own budget rehearsed first, and is
             `unconverged` until then; what windows before it had left is forgotten
    the last window of a corpus has LAST of the passes over all that is remembered, MOST_LAST tokens
             at most, and none are given up

`read` is what was read of all windows: the more is known already, the less there is to learn. The
first window starts at FIRST times the learning rate, for a model without any text leaves its start
slowly. Held-out loss as the criterion: Prechelt 1998, "Early stopping - but when?".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

ENOUGH = 0.001
"""Part of the held-out loss that a pass has to take off it."""
GIVEN_UP = 0.25
"""Part of what is left of the budget that a pass without a gain costs."""
FIRST = 2.0
"""How many times larger than the learning rate the first rehearsals of a model are."""
_SHORTEST = 3.0
"""A window is rehearsed for this part of the passes at least."""
LAST = 0.5
"""Part of the passes that the last window of a corpus is rehearsed for, over all windows."""
MOST_LAST = 15_000_000
"""Tokens that this takes at most: of two million words 7 passes bring most of what 15 bring."""
LEFT = 0.9
"""Part of the loss of frequencies alone below which a model has left its start."""
MIN_TOKENS = 64
"""Tokens below which a window is too short to be rehearsed, or too little is left."""
DECAY = 0.15
"""By which part of itself, times its rate, a row shrinks in one pass over all that is remembered,
by all nodes together, once the model has left its start: without it rows of little text go on
growing, and predict what was not learnt ever worse (weight decay; Krogh and Hertz 1992). Before, it
would keep the model there."""


@dataclass(frozen=True)
class Order:
    """What to learn next from the memory: so many tokens, at this part of the learning rate.

    decay   by which part of itself, times its rate, a row shrinks in a pass over all that is held
    evenly  drawn from all that is remembered, of the window under way no more than of others
    ended   window of a corpus of which no text is left (Unix seconds of its start)
    """

    tokens: int
    rate: float
    decay: float = 0.0
    evenly: bool = False
    ended: int | None = None


class Convergence:
    """A pure state machine: takes what was read and measured, and orders rehearsals.

    passes  most tokens rehearsed for each token of a model's first window; 0: none
    tick    tokens of one rehearsal, at most
    start   loss above which a model has not left its start
    last    as `tick`, of the last window; None: the same
    """

    def __init__(
        self, passes: float, tick: int, start: float = math.inf, last: int | None = None
    ) -> None:
        self.passes, self.tick, self.start = passes, tick, start
        self._last = tick if last is None else max(tick, last)
        self.window: int | None = None
        self.loss: float | None = None
        self.rehearsed = 0
        self._lately: float | None = None
        self._read = self._fresh = 0
        self._budget = self._left = 0.0
        self._before: int | None = None
        self._owed = 0.0
        self._over = False
        # Of the look under way; and the mean loss at the last one.
        self._tokens, self._losses = 0, list[float]()
        self._last_mean: float | None = None

    @property
    def converged(self) -> bool:
        """Whether nothing more is to be rehearsed of what was read so far."""
        return self._left < MIN_TOKENS

    @property
    def unconverged(self) -> int | None:
        """The first window (Unix seconds of its start) that is to be rehearsed still; else None."""
        if self.converged:
            return None
        return self.window if self._before is None else self._before

    def read(self, window: int, tokens: int) -> None:
        """Fresh tokens of a window (Unix seconds of its start) were learnt.

        Text of an earlier window, that came late, counts with the window under way.
        """
        if self.window is None or window > self.window:
            self._owed = max(self._left - self._owed, 0.0)
            self._before = self.window if self._owed >= MIN_TOKENS else None
            self._budget = self._left = self._owed
            self.window, self.loss = window, None
            self._fresh = self.rehearsed = 0
        # What is held out has changed: no earlier loss compares with later ones.
        self._tokens, self._losses, self._last_mean = 0, [], None
        self._read += tokens
        self._fresh += tokens
        known = max(self._fresh / self._read, 1.0 / _SHORTEST) if self._read else 0.0
        self._left += self.passes * tokens * known
        self._budget = max(self._budget, self._left)

    def end(self, remembered: int) -> None:
        """No more text comes of a corpus; so many tokens of it are remembered."""
        if self._fresh < self._read:
            self._left = self._budget = max(
                self._left, min(LAST * self.passes * remembered, MOST_LAST)
            )
            self._over = True

    def order(self) -> Order | None:
        """The next rehearsal; None: rest."""
        if self.converged:
            return None
        start = FIRST if self._fresh == self._read else 1.0
        most = self._last if self._over else self.tick
        tokens = max(min(most, self._read, int(self._left)), MIN_TOKENS)
        rate = start * (self._left - tokens / 2) / self._budget
        self._spend(tokens)
        left = self._lately is not None and self._lately < LEFT * self.start
        return Order(tokens, max(rate, 0.01), DECAY if left else 0.0, self._over)

    def measured(self, loss: float | None, tokens: int) -> None:
        """A rehearsal of so many tokens began at this held-out loss; None: it was not measured."""
        self.rehearsed += tokens
        self._tokens += tokens
        if loss is not None:
            self._lately = loss
            self._losses.append(loss)
        if self._tokens < max(self._fresh, self.tick) or not self._losses:
            return
        before, mean = self._last_mean, sum(self._losses) / len(self._losses)
        self._tokens, self._losses, self._last_mean = 0, [], mean
        self.loss = mean
        gained = before is None or before - mean >= ENOUGH * before
        if mean < self.start and not gained and not self._over:
            self._spend(self._left * GIVEN_UP)

    def _spend(self, tokens: float) -> None:
        self._left -= tokens
        self._owed -= tokens
        if self._owed < MIN_TOKENS:
            self._before, self._owed = None, 0.0
