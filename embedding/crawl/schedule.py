"""When to poll a listing next. Pure: times come in as arguments.

The rate of change is estimated as in J. Cho and H. Garcia-Molina, "Estimating frequency of
change", 2003: of n polls X found something new, so the rate is -log((n - X + 0.5) / (n + 0.5))
per interval, bias-reduced; old polls are forgotten exponentially. A source is polled about
twice per expected change, never more often than `every`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_FORGET = 0.9
_POLLS_PER_CHANGE = 2.0


@dataclass
class PollSchedule:
    """Poll times of one source. `every` and the returned delays are in seconds."""

    every: float
    slowest: float
    """The delay never exceeds `every × slowest` while polls succeed."""
    _polls: float = field(default=0.0, init=False)
    _changed: float = field(default=0.0, init=False)
    _spent: float = field(default=0.0, init=False)
    _failures: int = field(default=0, init=False)

    def polled(self, changed: bool, since_last: float) -> float:
        """Note a poll that succeeded `since_last` seconds after the one before; next delay."""
        self._failures = 0
        self._polls = self._polls * _FORGET + 1.0
        self._changed = self._changed * _FORGET + (1.0 if changed else 0.0)
        self._spent = self._spent * _FORGET + max(since_last, self.every)
        interval = self._spent / self._polls
        rate = -math.log((self._polls - self._changed + 0.5) / (self._polls + 0.5)) / interval
        wanted = 1.0 / (_POLLS_PER_CHANGE * rate) if rate > 0 else math.inf
        return min(max(wanted, self.every), self.every * self.slowest)

    def failed(self, retry_after: float) -> float:
        """Note a poll that failed; delays double up to 16 × `every`, at least `retry_after`."""
        self._failures += 1
        return max(self.every * 2.0 ** min(self._failures - 1, 4), retry_after)
