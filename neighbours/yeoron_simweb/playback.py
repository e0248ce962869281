"""The accelerated clock, as a pure state machine: wall time in, published documents out.

It reads no clock of its own. The map from event time to wall time is piecewise linear: stretches
without documents pass quickly, and the clock stands still while readers are too far behind, and at
the event time up to which it may play.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from embedding.kernel.errors import ConfigError

DAY_SECONDS = 86400.0

Knot = tuple[float, float]


class State(StrEnum):
    """What the clock is doing."""

    WAITING = "waiting"
    PLAYING = "playing"
    DONE = "done"


@dataclass(frozen=True)
class Timeline:
    """The undisturbed plan: knots (event, play) with play in wall seconds after the start."""

    knots: tuple[Knot, ...]

    @classmethod
    def plan(
        cls, events: Sequence[float], *, speed: float, longest_gap: float, end: float = 0.0
    ) -> Timeline:
        """Plan for sorted event times (Unix seconds), from the first midnight to the last, and to
        `end` where that is later.

        `speed` is event seconds per wall second; no stretch without documents takes longer than
        `longest_gap` event seconds would.
        """
        if not events:
            raise ConfigError("simweb: there is no document to play; at least one is needed.")
        if speed <= 0 or longest_gap <= 0:
            raise ConfigError(
                f"simweb: speed {speed} and longest gap {longest_gap} s must both be above 0, "
                "else the clock would never reach the end."
            )
        start = events[0] // DAY_SECONDS * DAY_SECONDS
        end = max((events[-1] // DAY_SECONDS + 1) * DAY_SECONDS, end)
        knots = [(start, 0.0)]
        last = start
        for event in (*events, end):
            if event - last > longest_gap:
                if last > knots[-1][0]:
                    knots.append((last, knots[-1][1] + (last - knots[-1][0]) / speed))
                knots.append((event, knots[-1][1] + longest_gap / speed))
            last = event
        if end > knots[-1][0]:
            knots.append((end, knots[-1][1] + (end - knots[-1][0]) / speed))
        return cls(tuple(knots))

    @property
    def start(self) -> float:
        return self.knots[0][0]

    @property
    def length(self) -> float:
        """Wall seconds that the whole plan takes."""
        return self.knots[-1][1]

    def play(self, event: float) -> float:
        """Wall seconds after the start at which `event` is reached."""
        at = min(max(bisect_right(self.knots, event, key=lambda k: k[0]), 1), len(self.knots) - 1)
        (e0, p0), (e1, p1) = self.knots[at - 1], self.knots[at]
        return p0 + (p1 - p0) * min(max((event - e0) / (e1 - e0), 0.0), 1.0)

    def event(self, play: float) -> float:
        """Event time reached `play` wall seconds after the start."""
        if play >= self.length:
            return self.knots[-1][0]
        at = min(max(bisect_right(self.knots, play, key=lambda k: k[1]), 1), len(self.knots) - 1)
        (e0, p0), (e1, p1) = self.knots[at - 1], self.knots[at]
        return e0 if p1 <= p0 else e0 + (e1 - e0) * max((play - p0) / (p1 - p0), 0.0)

    def between(self, low: float, high: float) -> list[Knot]:
        """Knots (event, play) with low < play < high."""
        return [knot for knot in self.knots if low < knot[1] < high]


class PlaybackClock:
    """Publishes documents along a timeline.

    `events` are the sorted event times of the documents. With `max_backlog` above 0 the clock
    stops just before the document that would make the backlog larger, and goes on once the
    backlog fell to three quarters of it (so that it does not stop at every document). It stops at
    the event time `until`, too.
    """

    def __init__(
        self, events: Sequence[float], timeline: Timeline, *, max_backlog: int = 0
    ) -> None:
        if any(a > b for a, b in pairwise(events)):
            raise ConfigError("simweb: event times must be sorted, else documents would be lost.")
        self._events = events
        self._timeline = timeline
        self._max_backlog = max_backlog
        self._resume_at = max_backlog * 3 // 4
        self.until = math.inf
        self._past: list[Knot] = []
        self._anchor: Knot = (0.0, 0.0)
        self._play = 0.0
        self._wall = 0.0
        self.state = State.WAITING
        self.holding = False
        self.published: list[float] = []
        """Wall times at which the documents published so far appeared."""

    @property
    def event(self) -> float:
        """Event time now (at the last `advance`)."""
        return self._timeline.event(self._play)

    def start(self, wall: float) -> None:
        """Begin to play at `wall` (Unix seconds); a second start changes nothing."""
        if self.state is State.WAITING:
            self.state = State.PLAYING
            self._wall = wall
            self._anchor = (0.0, wall)
            self._past = [(self._timeline.start, wall)]

    def advance(self, wall: float, backlog: int = 0) -> range:
        """Move to `wall`; returns the indexes of the documents published since the last call.

        `backlog` is how many published documents nobody has fetched. A wall time before the last
        one counts as the last one.
        """
        first = len(self.published)
        wall = max(wall, self._wall)
        if self.state is State.PLAYING:
            self._move(wall, *self._limit(backlog))
        self._wall = wall
        return range(first, len(self.published))

    def knots(self, wall: float) -> list[Knot]:
        """(event, wall) knots: what was played and, from now on, what is planned.

        Before the start a single knot, which puts every event at `wall`.
        """
        if self.state is State.WAITING:
            return [(self._timeline.start, wall)]
        play, base = self._anchor
        if self.holding:
            base = max(wall, self._wall)
        if play >= self._timeline.length:
            return list(self._past)
        last = self._last
        ahead = [(e, base + p - play) for e, p in self._timeline.between(play, last)]
        if play < last < math.inf:
            ahead.append((self.until, base + last - play))
        pause = [(self._timeline.event(play), base)] if self.holding else []
        return [*self._past, *pause, *ahead]

    @property
    def _last(self) -> float:
        """Play position of `until`; infinite where that is the end."""
        ends = self.until >= self._timeline.knots[-1][0]
        return math.inf if ends else self._timeline.play(self.until)

    def _limit(self, backlog: int) -> tuple[float, int]:
        """(play position, number of published documents) that may be reached now."""
        done, total = len(self.published), len(self._events)
        if self._max_backlog and self.holding and backlog > self._resume_at:
            return self._play, done
        at = done + max(self._max_backlog - backlog, 0) if self._max_backlog else total
        stop = self._timeline.length
        if at < total:
            before = self._events[at - 1] if at else self._timeline.start
            # Half way to the next document (at most a second before it): never on a document, so
            # that the knots of the pause cannot be mistaken for its time of publication.
            stop = self._timeline.play(self._events[at] - min(1.0, (self._events[at] - before) / 2))
        stop = min(stop, self._last)
        return max(stop, self._play), min(at, max(done, bisect_right(self._events, self.until)))

    def _move(self, wall: float, limit: float, count: int) -> None:
        if self.holding and limit > self._play:
            self.holding = False
            self._anchor = (self._play, self._wall)
            self._past.append((self.event, self._wall))
        if self.holding:
            return
        play, base = self._anchor
        wanted = play + wall - base
        self._play = max(min(wanted, limit), self._play)
        self._publish(play, base, count)
        if self._play >= self._timeline.length:
            self._end_stretch(play, base)
            self.state = State.DONE
        elif wanted > limit:
            self._end_stretch(play, base)
            self.holding = True

    def _publish(self, play: float, base: float, count: int) -> None:
        """Publish what lies before the current position, `count` documents in all at most."""
        finished = self._play >= self._timeline.length
        while len(self.published) < count:
            at = self._timeline.play(self._events[len(self.published)])
            if at > self._play and not finished:
                break
            self.published.append(base + at - play)

    def _end_stretch(self, play: float, base: float) -> None:
        """End a stretch of undisturbed play: its knots become past."""
        inner = self._timeline.between(play, self._play)
        self._past.extend((e, base + p - play) for e, p in inner)
        self._past.append((self.event, base + self._play - play))
        self._anchor = (self._play, base + self._play - play)
