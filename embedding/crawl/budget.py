"""Requests a second that are never exceeded, given out in the order in which they are asked for.

The generic cell rate algorithm: each request moves the theoretical time of the next one on by
1 / rate, and may start at most `burst` requests ahead of it.
"""

from __future__ import annotations

import math


class Budget:
    """`rate` requests a second after a burst; `inf` has no limit. Times are seconds."""

    def __init__(self, rate: float, burst: float = 1.0) -> None:
        self.rate = rate
        self._burst = burst
        self._next = -math.inf

    def earliest(self, now: float) -> float:
        """When the next request may start."""
        return max(now, self._next - (self._burst - 1.0) / self.rate)

    def take(self, at: float, cost: float) -> None:
        """Book `cost` requests that start at `at`, not before `earliest`."""
        if math.isinf(self.rate):
            return
        self._next = max(self._next, at) + cost / self.rate

    def correct(self, difference: float) -> None:
        """What was booked cost so many requests more, or less."""
        if not math.isinf(self.rate):
            self._next += difference / self.rate
