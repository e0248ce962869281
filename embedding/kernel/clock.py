"""Event time against wall time.

Live sources publish in wall time. When the past is played back (a demo, a test, a backfill), a
replay clock says which moment of the past is played at which wall moment, so that lag stays
measurable: lag = wall time a document became visible − wall time it was published.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class EventClock:
    """A piecewise linear map from event time to wall time (both Unix seconds).

    `knots` is a sorted sequence of (event, wall); empty means that event time is wall time.
    """

    knots: Sequence[tuple[float, float]] = ()

    def wall(self, event: float) -> float:
        """Wall time at which `event` was published; outside the knots the nearest knot's."""
        if not self.knots:
            return event
        at = bisect_right(self.knots, (event, float("inf")))
        if at == 0:
            return self.knots[0][1]
        if at == len(self.knots):
            return self.knots[-1][1]
        (e0, w0), (e1, w1) = self.knots[at - 1], self.knots[at]
        return w0 if e1 <= e0 else w0 + (w1 - w0) * (event - e0) / (e1 - e0)

    def event_now(self, wall: float | None = None) -> float:
        """Event time at `wall` (default: now)."""
        now = time.time() if wall is None else wall
        if not self.knots:
            return now
        if now >= self.knots[-1][1]:
            return self.knots[-1][0]
        for (e0, w0), (e1, w1) in zip(self.knots, self.knots[1:], strict=False):
            if w0 <= now < w1:
                return e0 + (e1 - e0) * (now - w0) / (w1 - w0)
        return self.knots[0][0]
