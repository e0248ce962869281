"""How often to poll each source so that most of them are fresh most of the time.

Y. Azar, E. Horvitz, E. Lubetzky, Y. Peres, D. Shahaf, "Tractable near-optimal policies for
crawling" (PNAS 2018): with changes at rate d and polls at rate r, both Poisson, a source is fresh
for a share r / (r + d) of the time. The weighted sum is concave, so at the optimum under a budget
all sources that are polled gain the same from one poll more, w d / (r + d)^2 = price, hence
r = sqrt(w d / price) - d; sources whose gain w / d never reaches the price are polled no more than
they must. The optimal rates then define an evenly spaced schedule. With a least and a most rate
for each source the sum still falls as the price rises, so the price is found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ChangeRateArray = npt.NDArray[np.float64]

_STEPS = 32
_NEVER = 1e200
"""A threshold that is not reached."""
_TINY = 1e-200


@dataclass(frozen=True)
class ChangeRates:
    """What is known of n sources, as float64 [n] arrays."""

    quiet: _ChangeRateArray
    """Changes a second that no signal tells of, > 0."""
    heard: _ChangeRateArray
    """Hazard that one signal is worth (see `sources.changes`)."""
    signals: _ChangeRateArray
    """Signals a second."""
    weight: _ChangeRateArray
    cost: _ChangeRateArray
    """Requests of one poll."""
    least: _ChangeRateArray
    """Polls a second that each source gets whatever it gains."""
    most: _ChangeRateArray

    @property
    def rate(self) -> _ChangeRateArray:
        """Changes a second."""
        return self.quiet - self.signals * np.expm1(-self.heard)


def thresholds(changes: ChangeRates, price: float | _ChangeRateArray) -> _ChangeRateArray:
    """Expected changes since the last poll at which each source is polled, at this price."""
    rate = changes.rate
    polls = np.sqrt(changes.weight * rate / (np.maximum(price, _TINY) * changes.cost)) - rate
    found: _ChangeRateArray = np.minimum(rate / np.maximum(polls, _TINY), _NEVER)
    return found


def poll_rates(changes: ChangeRates, price: float) -> _ChangeRateArray:
    """Polls a second that the thresholds lead to, with signals, between least and most.

    Hazard grows by `quiet` a second and by `heard` with each signal. A threshold is passed by whole
    signals, by half a signal too much on average, and one is enough where it is worth that much.
    """
    threshold = thresholds(changes, price)
    triggered = changes.signals * changes.heard / np.maximum(threshold + changes.heard / 2, _TINY)
    polls = changes.quiet / threshold + np.minimum(changes.signals, triggered)
    return np.clip(polls, changes.least, changes.most)


def price_of(changes: ChangeRates, budget: float) -> float:
    """The price at which all polls together cost `budget` requests a second; 0 when all can have
    their most. Where even the least rates cost more, the price is as high as it goes.
    """

    def used(price: float) -> float:
        return float(np.sum(poll_rates(changes, price) * changes.cost))

    if float(np.sum(changes.most * changes.cost)) <= budget:
        return 0.0
    gain = changes.weight / (changes.rate * changes.cost)
    low, high = np.log(float(gain.min()) * 1e-12), np.log(float(gain.max()) * 1.01)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if used(np.exp(middle)) > budget else (low, middle)
    return float(np.exp(high))
