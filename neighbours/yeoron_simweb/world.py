"""The state behind all pages: which documents are visible now, who fetched what."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from yeoron_simweb.config import PARTS, SimwebConfig
from yeoron_simweb.corpus import PlaybackCorpus
from yeoron_simweb.library import Library, LibraryItem
from yeoron_simweb.playback import PlaybackClock, Timeline


class PastArticles:
    """Counts published, unfetched documents of the parts that somebody reads.

    A part counts from the first request to it on: who began to read is waited for, however slow.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, set[str]] = {part: set() for part in PARTS}
        self._read: set[str] = set()
        self.fetches: Counter[str] = Counter()
        """Fetches by document id."""

    def read(self, part: str) -> None:
        self._read.add(part)

    def publish(self, part: str, key: str) -> None:
        if not self.fetches[key]:
            self._waiting[part].add(key)

    def fetch(self, part: str, key: str) -> None:
        self.fetches[key] += 1
        self._waiting[part].discard(key)

    def count(self) -> int:
        return sum(len(self._waiting[part]) for part in self._read)


class World:
    """Moves the clock when somebody looks, and answers what there is to see.

    Used from one event loop only. `now` gives wall time in Unix seconds.
    """

    def __init__(
        self, config: SimwebConfig, corpus: PlaybackCorpus, now: Callable[[], float] = time.time
    ) -> None:
        self.config = config
        self.corpus = corpus
        self.library = Library.build(corpus.documents, config.shares)
        events = [item.event for item in self.library.items]
        last = config.last_day
        timeline = Timeline.plan(
            events,
            speed=config.event_speed,
            longest_gap=config.longest_gap_hours * 3600,
            end=0.0 if last is None else midnight(last + timedelta(days=1)),
        )
        self.clock = PlaybackClock(events, timeline, max_backlog=config.max_backlog)
        self.backlog = PastArticles()
        self.requests: Counter[str] = Counter()
        """Requests by kind of address (first path segments)."""
        self.statuses: Counter[int] = Counter()
        """Answers by status."""
        self.violations: Counter[str] = Counter()
        """Requests by path that robots.txt disallows."""
        self.early_retries = 0
        """Requests that came before a Retry-After had passed."""
        self._now = now
        self._opened = now()
        self._unlearnt = 0
        self._failed: set[str] = set()
        self._visible: Counter[str] = Counter()
        if config.autostart:
            self.start()

    def start(self) -> None:
        self.clock.start(self._now())

    def pace(self, until: float, unlearnt: int) -> None:
        """Play no further than `until` (Unix seconds), and wait for fetched documents, too.

        unlearnt  how many of them nobody has learnt yet
        """
        self.clock.until, self._unlearnt = until, unlearnt

    def wall(self) -> float:
        return self._now()

    def tick(self) -> float:
        """Publish what is due; returns the wall time."""
        wall = self._now()
        for index in self.clock.advance(wall, self.backlog.count() + self._unlearnt):
            item = self.library.items[index]
            self._visible[item.part] += 1
            self.backlog.publish(item.part, item.id)
        return wall

    def read(self, part: str) -> Sequence[LibraryItem]:
        """Visible items of a part, oldest first; marks the part as read by somebody."""
        self.tick()
        self.backlog.read(part)
        return self.library.parts[part][: self._visible[part]]

    def find(self, key: str, *parts: str) -> LibraryItem | None:
        """The visible item with the id `key` in one of the parts, else None."""
        self.tick()
        item = self.library.by_id.get(key)
        if item is None or item.part not in parts or item.number >= self._visible[item.part]:
            return None
        return item

    def fetched(self, *items: LibraryItem) -> None:
        for item in items:
            self.backlog.fetch(item.part, item.id)

    def fails_once(self, item: LibraryItem) -> bool:
        """Whether this fetch is the one that fails, by `fault_rate` and the item's id."""
        share = int(item.id[-8:], 16) / 2**32
        if share >= self.config.fault_rate or item.id in self._failed:
            return False
        self._failed.add(item.id)
        return True

    def modified(self, item: LibraryItem) -> float:
        """Wall time at which a visible item appeared."""
        return self.clock.published[item.rank]

    def clock_state(self) -> dict[str, Any]:
        """The answer of /clock.json."""
        wall = self.tick()
        start = self._opened if self.clock.state == "waiting" else wall
        return {
            "event": _iso(self.clock.event),
            "wall": _iso(wall),
            "speed": self.config.event_speed,
            "state": self.clock.state.value,
            "holding": self.clock.holding,
            "knots": [list(knot) for knot in self.clock.knots(start)],
        }

    def statistics(self) -> dict[str, Any]:
        """The answer of /control/stats (counts only)."""
        self.tick()
        fetched: Counter[str] = Counter()
        again = 0
        for key, count in self.backlog.fetches.items():
            if count:
                fetched[self.library.by_id[key].part] += 1
                again += count - 1
        parts = {
            part: {
                "documents": len(self.library.parts[part]),
                "published": self._visible[part],
                "fetched": fetched[part],
            }
            for part in PARTS
        }
        return {
            "corpus": self.corpus.name,
            "state": self.clock.state.value,
            "event": self.clock.event,
            "documents": len(self.library.items),
            "published": len(self.clock.published),
            "fetched": fetched.total(),
            "fetched_again": again,
            "backlog": self.backlog.count(),
            "malformed_lines": self.corpus.malformed,
            "parts": parts,
            "requests": dict(sorted(self.requests.items())),
            "statuses": {str(status): n for status, n in sorted(self.statuses.items())},
            "robots_violations": self.violations.total(),
            "violations": dict(self.violations),
            "early_retries": self.early_retries,
        }


def midnight(day: date) -> float:
    """When a day begins (UTC), in Unix seconds."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
