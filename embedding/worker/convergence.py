"""How long a node goes on learning what it has read of a window, and at which rate.

The crawl is slow and text is little: after one pass a model has hardly left its random start. So a
node learns the text of a window again from its replay memory, until text that it does not learn
from is predicted no better. Some sentences are held out of training. With L the mean loss of their
pairs under the tables (`heldout.py`), measured at each rehearsal before it trains, and one pass as
many tokens as were read of the window,

    gain = (L at the last look - L now) / L at the last look,    one look a pass,

    gain < ENOUGH:  the rate is halved, for the steps are too large to get nearer
    rate < model.learning_rate / FINEST, or the budget is spent:  the window has settled

(reduce on plateau; held-out loss as the criterion: Prechelt 1998, "Early stopping - but when?").
The budget is `most` tokens for each token of the window. A rate that is halved FINEST times would
move nothing, so also without a budget this ends.
"""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH = 0.003
"""Relative gain of a pass that is worth another one at the same rate."""
FINEST = 8.0
"""How many times smaller than at the start the rate becomes."""
LEAST = 64
"""Tokens below which a window is too short to be rehearsed."""


@dataclass(frozen=True)
class Order:
    """What to learn next from the memory: so many tokens, at this part of the learning rate."""

    tokens: int
    rate: float


class Convergence:
    """A pure state machine: told what was read and measured, it orders what is rehearsed.

    passes  most tokens rehearsed for each token of a window; 0: none
    tick    tokens of one rehearsal
    """

    def __init__(self, passes: float, tick: int) -> None:
        self.passes, self.tick = passes, tick
        self.window: int | None = None
        self.loss: float | None = None
        self.first_loss: float | None = None
        self.rehearsed = 0
        self._fresh = 0
        self._rate = 1.0
        self._since = 0
        self._ordered = 0

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be rehearsed of what was read so far."""
        return (
            self._fresh < LEAST
            or self._rate < 1.0 / FINEST
            or self._ordered >= self.passes * self._fresh
        )

    @property
    def progress(self) -> float:
        """Part of the way to rest, 0 to 1: by the budget or by the rate, whichever is farther."""
        if self.settled:
            return 1.0
        spent = self._ordered / (self.passes * self._fresh)
        halved = (1.0 / self._rate - 1.0) / (2.0 * FINEST - 1.0)
        return min(max(spent, halved), 1.0)

    def read(self, window: int, tokens: int) -> None:
        """Fresh tokens of a window (Unix seconds of its start) were learnt."""
        if self.window is None or window > self.window:
            self.window, self.loss, self.first_loss = window, None, None
            self._fresh = self._ordered = self._since = self.rehearsed = 0
            self._rate = 1.0
        self._fresh += tokens
        if self._rate < 1.0:
            # New text: the rate rises again, the more the more there is of it.
            self._rate = max(self._rate, min(1.0, 2.0 * tokens / self._fresh))

    def order(self) -> Order | None:
        """The next rehearsal; None: rest."""
        if self.settled:
            return None
        most = int(self.passes * self._fresh) - self._ordered
        tokens = min(self.tick, self._fresh, max(most, LEAST))
        self._ordered += tokens
        return Order(tokens, self._rate)

    def measured(self, loss: float | None, tokens: int) -> None:
        """A rehearsal of so many tokens began at this held-out loss; None: nothing to measure by.

        Without a loss the rate falls with the budget, so that the end comes all the same.
        """
        self.rehearsed += tokens
        self._since += tokens
        if loss is None:
            self._rate = max(
                1.0 - self._ordered / max(self.passes * self._fresh, 1.0), 1.0 / FINEST
            )
            return
        if self.loss is None:
            self.loss = self.first_loss = loss
            self._since = tokens
            return
        if self._since <= self._fresh:
            return
        gain = (self.loss - loss) / self.loss if self.loss else 0.0
        self.loss, self._since = loss, tokens
        if gain < ENOUGH:
            self._rate /= 2.0
