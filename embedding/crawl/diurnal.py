"""How often a source usually brings something new, by hour of the day. Pure: times come in.

A Poisson rate for each hour of working days and of weekends, in the source's own time zone, with a
Gamma prior at the mean rate and exponential forgetting (A. Gelman et al., Bayesian Data Analysis,
section 2.6). An hour is believed only once it has been seen on an earlier day, and by its lower
bound, so that a night after the first day is no surprise. Sources with few items a day have one
rate for all hours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

_HOUR = 3600.0
_HALF_LIFE = 14 * 86400.0
_RARE = 12.0
"""Items a day below which a source has no rhythm to speak of."""
_PRIOR = 1.0
"""Items that the prior of one hour is worth."""
_STEP = 900.0
"""A stretch is cut at multiples of this many seconds: no zone changes its hour in between."""
_DISPERSION_MEMORY = 0.97


class DiurnalRate:
    """Learns from `saw`; says what was to be `expected`."""

    def __init__(self, zone: str) -> None:
        self.zone = ZoneInfo(zone)
        self._items = np.zeros(48)
        self._seconds = np.zeros(48)
        # What the present hour saw counts for later days only.
        self._open = (-1, 0.0, 0.0)
        self._squares = 0.0
        self._weight = 0.0

    @property
    def items(self) -> float:
        """Items learnt from, forgotten ones not counted."""
        return float(self._items.sum() + self._open[1])

    @property
    def mean(self) -> float:
        """Items a second over all that was seen; 0 before."""
        seconds = float(self._seconds.sum() + self._open[2])
        return self.items / seconds if seconds else 0.0

    @property
    def dispersion(self) -> float:
        """Variance of hourly counts over that of a Poisson process, at least 1.

        News come in bursts: evidence is worth less by this factor.
        """
        return max(1.0, self._squares / self._weight) if self._weight > 3.0 else 1.0

    def expected(self, start: float, end: float) -> float:
        """Items that a stretch (Unix seconds) should have brought, at the least."""
        return sum(seconds * self._rate(hour) for hour, seconds in self._pieces(start, end))

    def saw(self, start: float, end: float, items: int) -> None:
        """A stretch in which the source was watched brought `items`."""
        pieces = list(self._pieces(start, end))
        total = sum(seconds for _, seconds in pieces)
        if total <= 0:
            return
        for hour, seconds in pieces:
            if hour != self._open[0]:
                self._close()
                self._open = (hour, 0.0, 0.0)
            _, count, spent = self._open
            self._open = (hour, count + items * seconds / total, spent + seconds)

    def state(self) -> dict[str, Any]:
        """All that was learnt, JSON-safe; `restore` takes it."""
        return {
            "zone": str(self.zone),
            "items": self._items.tolist(),
            "seconds": self._seconds.tolist(),
            "open": list(self._open),
            "bursts": [self._squares, self._weight],
        }

    def restore(self, state: Mapping[str, Any], away: float) -> bool:
        """Go on with what another rhythm had learnt, `away` seconds ago; whether it was taken.

        What was learnt in another time zone, or is not whole, is left alone. What lies back is
        forgotten as if the source had been watched meanwhile, for a week at most.
        """
        try:
            items, seconds = (
                np.array(state[name], dtype=np.float64) for name in ("items", "seconds")
            )
            hour, count, spent = (float(value) for value in state["open"])
            squares, weight = (float(value) for value in state["bursts"])
        except (KeyError, TypeError, ValueError):
            return False
        figures = (*items, *seconds, count, spent, squares, weight)
        whole = items.shape == seconds.shape == (48,) and -1 <= hour < 48
        if not whole or state.get("zone") != str(self.zone):
            return False
        if not all(math.isfinite(each) and each >= 0 for each in figures):
            return False
        keep = 0.5 ** (min(away, 7 * 86400.0) / _HALF_LIFE)
        self._items, self._seconds = items * keep, seconds * keep
        self._open, self._squares, self._weight = (int(hour), count, spent), squares, weight
        return True

    def _close(self) -> None:
        hour, count, spent = self._open
        if hour < 0 or spent <= 0:
            return
        usual = self._posterior(hour) * spent
        if self._seconds[hour] >= _HOUR / 2 and usual >= 1.0:
            self._squares = self._squares * _DISPERSION_MEMORY + (count - usual) ** 2 / usual
            self._weight = self._weight * _DISPERSION_MEMORY + 1.0
        keep = 0.5 ** (spent / _HALF_LIFE)
        self._items *= keep
        self._seconds *= keep
        self._items[hour] += count
        self._seconds[hour] += spent

    def _posterior(self, hour: int) -> float:
        """Mean of the Gamma posterior of an hour's rate, in items a second."""
        mean = self.mean
        if mean <= 0:
            return 0.0
        return float((self._items[hour] + _PRIOR) / (self._seconds[hour] + _PRIOR / mean))

    def _rate(self, hour: int) -> float:
        """Lower bound, one standard deviation below the posterior mean, in items a second."""
        if self.mean * 86400.0 < _RARE:
            # A day that has not ended says little of a day.
            known = float(self._seconds.sum()) >= 86400.0
            return self.mean * _lower(self.items) if known else 0.0
        if self._seconds[hour] < _HOUR / 2:
            return 0.0
        return self._posterior(hour) * _lower(float(self._items[hour]) + _PRIOR)

    def _pieces(self, start: float, end: float) -> Iterator[tuple[int, float]]:
        """(hour of the day, 24 more on weekends; seconds) of a stretch, at most a week of it."""
        at = max(start, end - 7 * 86400.0)
        while at < end:
            following = min(end, (math.floor(at / _STEP) + 1) * _STEP)
            moment = datetime.fromtimestamp(at, self.zone)
            yield moment.hour + (24 if moment.weekday() >= 5 else 0), following - at
            at = following


def _lower(items: float) -> float:
    return max(0.0, 1.0 - 1.0 / math.sqrt(items)) if items > 0 else 0.0
