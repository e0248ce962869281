"""When a source's silence is an alarm. Pure: times and outcomes come in, an alarm comes out.

New items of a source are taken for a Poisson process with a daily rhythm (`DiurnalRate`). Evidence
for "it brings a tenth of what it should" against "it is as usual" is summed up as in the CUSUM
test (E. S. Page, "Continuous inspection schemes", 1954): each stretch adds
`0.9 × expected − 2.3 × items`, over the dispersion, and the sum never falls below zero. It says
`silence_evidence` roughly when that many expected items are missing, and a false alarm comes once
in e^`silence_evidence` items. Whatever fails for good is named at once, without any statistics.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from embedding.crawl.config import CrawlConfig
from embedding.crawl.origins import DateOrigin

CrawlReport = dict[str, dict[str, Any]]
"""Reports by name of source (`SourceCounters.report`); safe for JSON."""


@dataclass
class SourceCounters:
    """What happened to one source since the crawler started."""

    listed: int = 0
    """New references and inline texts."""
    fetched: int = 0
    """Pages read, listings not included."""
    documents: int = 0
    duplicates: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    dated: Counter[str] = field(default_factory=Counter)
    last_error: str = ""
    published: float | None = None
    """Latest event time (Unix seconds) of a document."""
    active: float = field(default_factory=time.monotonic)

    def failed(self, reason: str, sentence: str) -> None:
        self.errors[reason] += 1
        self.last_error = sentence

    def yielded(self, published: float, origin: DateOrigin) -> None:
        """Count a document, and by what its date is known."""
        self.documents += 1
        self.dated[origin] += 1
        self.published = published if self.published is None else max(self.published, published)
        self.active = time.monotonic()

    def report(
        self, pending: int, watch: YieldWatch, poll: dict[str, Any] | None
    ) -> dict[str, Any]:
        """The counters, JSON-safe, with the frontier's backlog, the source's yield and its polls.

        errors  failures and what was left out, by named reason (`reasons.py`)
        dated   documents by what their date is known by (`DateOrigin`)
        alarm   stands now; `alarms` counts by event what was raised since the crawler started
        poll    see `PollSchedule.report`
        """
        when = None if self.published is None else datetime.fromtimestamp(self.published, UTC)
        return {
            "listed": self.listed,
            "fetched": self.fetched,
            "documents": self.documents,
            "duplicates": self.duplicates,
            "errors": dict(self.errors),
            "dated": dict(self.dated),
            "last_error": self.last_error,
            "published_at": when.isoformat() if when else None,
            "idle_s": round(time.monotonic() - self.active, 3),
            "pending": pending,
            "poll": poll,
            "alarm": None if watch.alarm is None else watch.alarm.report(),
            "alarms": dict(watch.raised),
        }


# How often a source usually brings something new, by hour of the day. Pure: times come in.
#
# A Poisson rate for each hour of working days and of weekends, in the source's own time zone, with
# a Gamma prior at the mean rate and exponential forgetting (A. Gelman et al., Bayesian Data
# Analysis, section 2.6). An hour is believed only once it has been seen on an earlier day, and by
# its lower bound, so that a night after the first day is no surprise. Sources with few items a day
# have one rate for all hours.
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
        if not all(0 <= figure < math.inf for figure in figures):
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
        begin = max(start, end - 7 * 86400.0)
        while begin < end:
            following = min(end, (math.floor(begin / _STEP) + 1) * _STEP)
            moment = datetime.fromtimestamp(begin, self.zone)
            yield moment.hour + (24 if moment.weekday() >= 5 else 0), following - begin
            begin = following


def _lower(items: float) -> float:
    return max(0.0, 1.0 - 1.0 / math.sqrt(items)) if items > 0 else 0.0


_FALLS_TO = 0.1
_FAILURES = 5
"""Polls in a row that fail, or list nothing at all, before that is an alarm."""
_BARREN = 20
"""Pages in a row without text before that is an alarm."""
_LEARN = 20.0
"""Items before anything is expected of a source."""
_NEW_NORMAL = 7 * 86400.0
"""Seconds after which an alarm ends: how the source behaves by then is its new normal."""
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

    def report(self) -> dict[str, str]:
        """JSON-safe."""
        since = datetime.fromtimestamp(self.since, UTC).isoformat(timespec="seconds")
        return {"event": self.event.value, "since": since, "sentence": self.sentence}


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
        trouble = self._fixed() or (self._why() if self._silent(now) else None)
        if trouble is None:
            # A silence ends well below where it began: a single item ends none.
            if self.alarm is not None and self._evidence < self._enough / 2:
                self.alarm = None
            elif self.alarm is not None and now - self.alarm.since > _NEW_NORMAL:
                self._start_anew()
            return
        event, sentence = trouble
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
            return Event.UNDATED, "none of its texts can be dated; see its setting `undated`"
        return None

    def _why(self) -> tuple[Event, str]:
        """The name of a silence, by what is amiss at the moment."""
        last = self._last or 0.0
        hours = 0.0 if self._quiet_since is None else (last - self._quiet_since) / 3600
        missing = f"far fewer new items than usual for {hours:.1f} h"
        if self._failures:
            blocked = self._failures[-1] in _BLOCKED
            event = Event.BLOCKED if blocked else Event.UNREACHABLE
            return event, f"{missing}, and the last poll failed ({self._failures[-1]})"
        if self._bare:
            return Event.PAGE_CHANGED, f"{missing}, and its listing names nothing"
        return Event.EMPTY, f"{missing}, though it can be read"
