"""A token-bucket rate limiter that knows no clock: time is handed in, so it is exact to test."""

from __future__ import annotations

import math

from embedding.kernel.errors import ConfigError


class TokenBucket:
    """Lets `rate` units a second pass on average and at most `burst` at once.

    `rate` is in units per second (> 0, may be infinite), `burst` in units (> 0). Times are seconds
    of any one clock; a time before the last one seen counts as that one. A cost above `burst` is
    allowed: it leaves a debt that later calls wait for, so that a large item cannot wait forever.
    """

    def __init__(self, rate: float, burst: float, *, now: float = 0.0) -> None:
        if not rate > 0 or math.isnan(rate):
            raise ConfigError(f"rate limiter: rate must be above 0 units a second, got {rate}.")
        if not burst > 0 or not math.isfinite(burst):
            raise ConfigError(
                f"rate limiter: burst must be a number of units above 0, got {burst}; "
                "with less nothing would ever pass."
            )
        self.rate = rate
        self.burst = burst
        self._level = burst
        self._now = now

    def _refill(self, now: float) -> None:
        """Let the bucket fill for the time that passed."""
        if now > self._now:
            self._level = min(self.burst, self._level + (now - self._now) * self.rate)
            self._now = now

    def delay(self, now: float, cost: float = 1.0) -> float:
        """Seconds from `now` until `cost` units may pass (0.0: at once); takes nothing."""
        self._refill(now)
        missing = min(cost, self.burst) - self._level
        return max(0.0, missing / self.rate)

    def take(self, now: float, cost: float = 1.0) -> bool:
        """Take `cost` units if they may pass at `now`; False (and nothing taken) otherwise."""
        if cost < 0:
            raise ConfigError(f"rate limiter: a cost cannot be negative, got {cost}.")
        # Waiting exactly `delay` must be enough: rounding may leave a hair missing.
        if self.delay(now, cost) > 1e-9:
            return False
        self._level -= cost
        return True

    def reserve(self, now: float, cost: float = 1.0) -> float:
        """Take `cost` units now and return how many seconds the caller must wait before use."""
        if cost < 0:
            raise ConfigError(f"rate limiter: a cost cannot be negative, got {cost}.")
        wait = self.delay(now, cost)
        self._level -= cost
        return wait
