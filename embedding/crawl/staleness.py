"""When a source's silence is an alarm. Pure: times and outcomes come in, an alarm comes out.

New items of a source are taken for a Poisson process with a daily rhythm (`diurnal.py`). Evidence
for "it brings a tenth of what it should" against "it is as usual" is summed up as in the CUSUM
test (E. S. Page, "Continuous inspection schemes", 1954): each stretch adds
`0.9 × expected − 2.3 × items`, over the dispersion, and the sum never falls below zero. It says
`silence_evidence` roughly when that many expected items are missing, and a false alarm comes once
in e^`silence_evidence` items. Whatever fails for good is named at once, without any statistics.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from embedding.crawl.config import CrawlConfig
from embedding.crawl.diurnal import DiurnalRate

_FALLS_TO = 0.1
_FAILURES = 5
"""Polls in a row that fail, or list nothing at all, before that is an alarm."""
_BARREN = 20
"""Pages in a row without text before that is an alarm."""
_LEARN = 20.0
"""Items before anything is expected of a source."""
_NEW_NORMAL = 7 * 86400.0
"""Seconds of an alarm after which what the source does now is what it does."""
_BLOCKED = ("http_4xx", "login", "robots", "robots_unreadable", "private_address", "port")


class Event(StrEnum):
    """Why a source went silent."""

    PAGE_CHANGED = "page_changed"
    """It answers, but its listing names nothing or its pages hold no text any more."""
    BLOCKED = "blocked"
    """It refuses: 401, 403, 429, robots.txt."""
    UNREACHABLE = "unreachable"
    """No usable answer: names, connections, timeouts, 5xx."""
    EMPTY = "empty"
    """All works, and nothing new comes."""
    UNDATED = "undated"
    """Nothing of it can be dated."""


@dataclass(frozen=True)
class Alarm:
    """A source out of its usual range since `since` (Unix seconds)."""

    event: Event
    since: float
    sentence: str


class YieldWatch:
    """One source; `alarm` is what stands now, `raised` counts what was ever raised.

    zone   time zone of the source's daily rhythm
    every  seconds between two polls
    """

    def __init__(self, zone: str, every: float, config: CrawlConfig) -> None:
        self.alarm: Alarm | None = None
        self.raised: Counter[str] = Counter()
        self._diurnal = DiurnalRate(zone)
        self._enough = config.silence_evidence
        self._least = max(config.silence_least, 3.0 * every)
        self._last: float | None = None
        self._evidence = 0.0
        self._quiet_since: float | None = None
        self._failures: list[str] = []
        self._bare = 0
        self._barren: list[str] = []
        self._listed_before = False
        self._dated: Counter[bool] = Counter()

    def state(self) -> dict[str, Any]:
        """What was learnt of the source, JSON-safe; `restore` takes it."""
        return {
            "rhythm": self._diurnal.state(),
            "evidence": self._evidence,
            "quiet_since": self._quiet_since,
            "listed": self._listed_before,
        }

    def restore(self, state: Mapping[str, Any], away: float) -> None:
        """Go on with what a watch before this one had learnt, `away` seconds ago.

        The time between is nobody's silence: nothing was watched. What is not whole is left alone.
        """
        diurnal, evidence, since = (state.get(n) for n in ("rhythm", "evidence", "quiet_since"))
        usual = isinstance(diurnal, Mapping) and self._diurnal.restore(diurnal, away)
        # Evidence is against what is usual: without that there is none.
        if usual and isinstance(evidence, float) and 0.0 < evidence <= 1.5 * self._enough:
            self._evidence = evidence
            self._quiet_since = since + away if isinstance(since, float) else None
        self._listed_before = state.get("listed") is True

    def polled(self, now: float, new: int, listed: int | None) -> None:
        """A poll went well: `new` items of `listed` in all; None: the listing has not changed."""
        self._failures.clear()
        if listed is not None:
            self._bare = 0 if listed else self._bare + 1
            self._listed_before = self._listed_before or listed > 0
        last, self._last = self._last, now
        # The first poll finds all that had come before; it says nothing of a rate.
        if last is not None and now > last:
            self._weigh(last, now, new)
        self._judge(now)

    def poll_failed(self, now: float, reason: str) -> None:
        """A poll failed; the time until the next good one counts as watched."""
        self._failures.append(reason)
        del self._failures[:-_FAILURES]
        self._judge(now)

    def page(self, now: float, reason: str | None) -> None:
        """A listed page was read: None with text, else why it held none."""
        if reason is None:
            self._barren.clear()
        else:
            self._barren.append(reason)
            del self._barren[:-_BARREN]
        self._judge(now)

    def dated(self, now: float, known: bool) -> None:
        """A document has a date, or none."""
        self._dated[known] += 1
        self._judge(now)

    def _weigh(self, start: float, end: float, new: int) -> None:
        diurnal = self._diurnal
        expected = diurnal.expected(start, end) if diurnal.items >= _LEARN else 0.0
        weight = 1.0 / diurnal.dispersion
        change = weight * (expected * (1.0 - _FALLS_TO) + new * math.log(_FALLS_TO))
        ceiling = self._enough * 1.5
        self._evidence = min(max(0.0, self._evidence + change), ceiling)
        if self._evidence == 0.0:
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = start
        if not self._silent(end):
            diurnal.saw(start, end, new)

    def _silent(self, now: float) -> bool:
        quiet = self._quiet_since
        return self._evidence >= self._enough and quiet is not None and now - quiet >= self._least

    def _judge(self, now: float) -> None:
        """Raise, keep or clear the alarm."""
        found = self._fixed() or (self._why() if self._silent(now) else None)
        if found is None:
            # A silence ends well below where it began: a single item ends none.
            if self.alarm is not None and self._evidence < self._enough / 2:
                self.alarm = None
            elif self.alarm is not None and now - self.alarm.since > _NEW_NORMAL:
                self._start_anew()
            return
        event, sentence = found
        if self.alarm is None or self.alarm.event is not event:
            self.alarm = Alarm(event, now, sentence)
            self.raised[event.value] += 1
        elif now - self.alarm.since > _NEW_NORMAL and event is Event.EMPTY:
            self._start_anew()

    def _start_anew(self) -> None:
        self._diurnal = DiurnalRate(str(self._diurnal.zone))
        self._evidence, self._quiet_since, self.alarm = 0.0, None, None

    def _fixed(self) -> tuple[Event, str] | None:
        """What fails each time; no count is needed to see it."""
        if len(self._failures) >= _FAILURES:
            reason, n = Counter(self._failures).most_common(1)[0]
            event = Event.BLOCKED if reason in _BLOCKED else Event.UNREACHABLE
            if reason == "parse":
                event = Event.PAGE_CHANGED
            return event, f"the last {_FAILURES} polls failed ({reason} {n} times)"
        if self._bare >= _FAILURES:
            before = "names nothing any more" if self._listed_before else "names nothing"
            return Event.PAGE_CHANGED, f"its listing {before}, {self._bare} polls in a row"
        if len(self._barren) >= _BARREN:
            reason, n = Counter(self._barren).most_common(1)[0]
            event = Event.BLOCKED if reason in _BLOCKED else Event.PAGE_CHANGED
            return event, f"the last {_BARREN} pages gave no text ({reason} {n} times)"
        if self._dated[False] >= _FAILURES and not self._dated[True]:
            return (
                Event.UNDATED,
                "nothing of it can be dated; `undated` of the source says what then",
            )
        return None

    def _why(self) -> tuple[Event, str]:
        """The name of a silence, by what is amiss at the moment."""
        hours = (
            0.0 if self._quiet_since is None else (self._last or 0.0) - self._quiet_since
        ) / 3600
        missing = f"far fewer new items than usual for {hours:.1f} h"
        if self._failures:
            blocked = self._failures[-1] in _BLOCKED
            event = Event.BLOCKED if blocked else Event.UNREACHABLE
            return event, f"{missing}, and the last poll failed ({self._failures[-1]})"
        if self._bare:
            return Event.PAGE_CHANGED, f"{missing}, and its listing names nothing"
        return Event.EMPTY, f"{missing}, though it can be read"
