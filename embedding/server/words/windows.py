"""When is a window of event time complete? A pure state machine over what the sources tell.

The watermark is the event time up to which everything has been learnt, as far as can be known:
the least of the latest event times of all live sources (Akidau 2015, section 2.3, a heuristic
watermark). A source is live while it has something pending or had news a short while ago.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from embedding.kernel.records import Calendar, Window
from embedding.server.parts import Content, Erasure, Moment, Part, Saved


@dataclass
class SourceState:
    """One source.

    published  latest event time that was learnt (None: nothing yet); last_news  when that was
    pending    documents found and not learnt yet, by node
    heard      latest event time by node: several nodes may share the reading of one source
    """

    published: float | None = None
    last_news: float = 0.0
    pending: dict[str, int] = field(default_factory=dict)
    heard: dict[str, float] = field(default_factory=dict)

    def reached(self) -> float | None:
        """Event time up to which every node that reads it has come; None: one has yet to begin.

        Where no node was heard it is what was learnt before.
        """
        if not self.heard:
            return self.published
        if any(n and node not in self.heard for node, n in self.pending.items()):
            return None
        return min(self.heard.values())


class WindowTracker(Part):
    """Follows sources and says which windows can be cut.

    `now` is any monotonic clock, in seconds. Sources that are `in_step` are read together in time
    order, by each node that reads them: what was learnt of one says how far all have come.
    """

    def __init__(
        self,
        calendar: Calendar,
        *,
        idle_s: float,
        in_step: bool = False,
    ) -> None:
        self.calendar = calendar
        self.idle_s = idle_s
        self.in_step = in_step
        self.watermark: float | None = None
        self.sources: dict[str, SourceState] = {}
        self._slowest: tuple[str, SourceState] | None = None
        self._read_by: dict[str, set[str]] = {}
        self._event_now: dict[str, float] = {}
        self._expected: dict[str, float] = {}

    @property
    def nodes(self) -> set[str]:
        """Those that read any source."""
        return set(self._read_by)

    def save(self) -> Saved:
        facts = {
            "watermark": self.watermark,
            "event_times": {name: state.published for name, state in self.sources.items()},
            "readers_of": {
                name: {"event_times": dict(state.heard), "pending": dict(state.pending)}
                for name, state in self.sources.items()
            },
        }
        return Saved(facts)

    def load(self, content: Content) -> None:
        """See Part: nodes are as far as they were once."""
        now = time.monotonic()
        for name, published in content.facts["event_times"].items():
            if published is not None:
                self.progress(name, published, now=now)
        self.watermark = content.facts["watermark"]
        for name, readers in content.facts["readers_of"].items():
            state = self.sources.setdefault(name, SourceState())
            state.heard = {node: float(at) for node, at in readers["event_times"].items()}
            state.pending = {node: int(n) for node, n in readers["pending"].items()}
            for node in (*state.heard, *state.pending):
                self._read_by.setdefault(node, set()).add(name)

    def tick(self, now: float) -> None:
        """Who never came back after a restart is waited for no longer, whoever else asks."""
        self.advance(now=now)

    def describe(self, at: Moment) -> dict[str, Any]:
        return {"watermark": at.iso(self.advance(now=at.now))}

    def forget(self, erasure: Erasure) -> None:
        self.sources.pop(erasure.source or "", None)

    def expect(self, nodes: Iterable[str], *, until: float) -> None:
        """Wait for these, of which nobody knows what they have read meanwhile (after a restart).

        The watermark stands until each of them was heard. By `until` they have left.
        """
        self._expected.update(dict.fromkeys(nodes, until))

    def back(self, node: str) -> None:
        """One that was expected is here again."""
        self._expected.pop(node, None)

    @property
    def expected(self) -> set[str]:
        """Those who are waited for so."""
        return set(self._expected)

    def progress(self, source: str, published: float, *, now: float, node: str = "") -> None:
        """A push of a node held documents of a source up to event time `published`."""
        state = self.sources.setdefault(source, SourceState())
        if node:
            self._expected.pop(node, None)
            self._read_by.setdefault(node, set()).add(source)
            state.heard[node] = later(state.heard.get(node), published)
        state.published = later(state.published, published)
        state.last_news = now

    def report(
        self,
        node: str,
        pending: Mapping[str, int] | None,
        *,
        now: float,
        event_now: float | None = None,
    ) -> None:
        """What a node has found and not learnt yet, by source; event time now, if known.

        pending  None: it does not say which sources it reads
        """
        # A source that it reads no longer is another node's: nobody waits for this one there, not
        # even where it pushed the rest of the source after it had reported that it gave it up.
        own = self._read_by.setdefault(node, set())
        for source in [] if pending is None else own - pending.keys():
            self._forget(source, node)
            own.discard(source)
        for source, n in (pending or {}).items():
            state = self.sources.setdefault(source, SourceState(last_news=now))
            state.pending[node] = n
            own.add(source)
        if event_now is not None:
            self._event_now[node] = event_now

    def leave(self, node: str) -> None:
        """A node went away: what it had pending is not waited for."""
        self._event_now.pop(node, None)
        self._expected.pop(node, None)
        for source in self._read_by.pop(node, ()):
            self._forget(source, node)

    def _forget(self, source: str, node: str) -> None:
        """A node reads a source no longer."""
        state = self.sources.get(source, SourceState())
        state.pending.pop(node, None)
        state.heard.pop(node, None)

    def advance(self, *, now: float) -> float | None:
        """The watermark (Unix seconds of event time); it never goes back."""
        for node in [node for node, until in self._expected.items() if now >= until]:
            self.leave(node)
        if self._expected:
            return self.watermark
        if self._still_slowest(now):
            return self.watermark
        candidate, self._slowest = None, None
        if self.in_step:
            joined = _joined(self.sources.values())
            live = self._live(joined, now)
            candidate = joined.reached() if live else None
        else:
            live = False
            for name, state in self.sources.items():
                if not self._live(state, now):
                    continue
                live, reached = True, state.reached()
                if reached is None or candidate is None or reached < candidate:
                    candidate, self._slowest = reached, (name, state)
                if reached is None:
                    break
        if not live and self._event_now:
            candidate = min(self._event_now.values())
        if candidate is not None:
            self.watermark = later(self.watermark, candidate)
        return self.watermark

    def _still_slowest(self, now: float) -> bool:
        """Whether the source that held the watermark back still does, so that nobody else matters.

        It is asked for with every push: thousands of sources are looked through only when the
        slowest of them has moved.
        """
        if self._slowest is None:
            return False
        name, state = self._slowest
        if self.sources.get(name) is not state or not self._live(state, now):
            return False
        reached = state.reached()
        return reached is None or (self.watermark is not None and reached <= self.watermark)

    def due(self, starts: Iterable[int], *, now: float) -> list[Window]:
        """Windows that start at `starts` and that the watermark has passed, in order."""
        watermark = self.advance(now=now)
        if watermark is None:
            return []
        windows = [self.window(start) for start in sorted(starts)]
        return [window for window in windows if window.end.timestamp() <= watermark]

    def passed(self, start: int) -> bool:
        """Whether the watermark has passed the window that starts at `start`."""
        end = self.window(start).end.timestamp()
        return self.watermark is not None and end <= self.watermark

    def behind(self, start: int, nodes: Iterable[str]) -> set[str]:
        """Nodes that were not heard from behind the window that starts at `start`."""
        end, heard = self.window(start).end.timestamp(), _joined(self.sources.values()).heard
        return {node for node in nodes if heard.get(node, -math.inf) < end}

    def window(self, start: int) -> Window:
        """The window that starts at `start` (Unix seconds)."""
        return self.calendar.window(start)

    def _live(self, state: SourceState, now: float) -> bool:
        return any(state.pending.values()) or now - state.last_news <= self.idle_s


def _joined(states: Iterable[SourceState]) -> SourceState:
    """Sources that are read together, as one."""
    joined = SourceState(last_news=-math.inf)
    for state in states:
        joined.last_news = max(joined.last_news, state.last_news)
        if state.published is not None:
            joined.published = later(joined.published, state.published)
        for node, n in state.pending.items():
            joined.pending[node] = joined.pending.get(node, 0) + n
        for node, published in state.heard.items():
            joined.heard[node] = later(joined.heard.get(node), published)
    return joined


def later(known: float | None, other: float) -> float:
    """The later of two times, of which the first may be missing."""
    return other if known is None else max(known, other)
