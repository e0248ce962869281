"""Counters by source."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypedDict

from embedding.crawl.origins import DateOrigin
from embedding.crawl.schedule import PollReport
from embedding.crawl.staleness import Alarm, YieldWatch


class AlarmReport(TypedDict):
    """Why a source is out of its usual range, and since when (see `staleness.py`)."""

    event: str
    since: str
    sentence: str


class SourceReport(TypedDict):
    """One source's counters, JSON-safe.

    errors  failures and what was left out, by named reason (`reasons.py`)
    dated   documents by what their date is known by (`DateOrigin`)

    `alarm` stands now; `alarms` counts by event what was raised since the crawler started.
    """

    listed: int
    fetched: int
    documents: int
    duplicates: int
    errors: dict[str, int]
    dated: dict[str, int]
    last_error: str
    published_at: str | None
    idle_s: float
    pending: int
    poll: PollReport | None
    alarm: AlarmReport | None
    alarms: dict[str, int]


CrawlReport = dict[str, SourceReport]
"""Reports by name of source; safe for JSON."""


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
        """Count a failure and keep its sentence."""
        self.errors[reason] += 1
        self.last_error = sentence

    def yielded(self, published: float, origin: DateOrigin) -> None:
        """Count a document, and by what its date is known."""
        self.documents += 1
        self.dated[origin] += 1
        self.published = published if self.published is None else max(self.published, published)
        self.active = time.monotonic()

    def report(self, pending: int, watch: YieldWatch, poll: PollReport | None) -> SourceReport:
        """The counters with the frontier's backlog, the source's yield and its polls."""
        when = None if self.published is None else datetime.fromtimestamp(self.published, UTC)
        return SourceReport(
            listed=self.listed,
            fetched=self.fetched,
            documents=self.documents,
            duplicates=self.duplicates,
            errors=dict(self.errors),
            dated=dict(self.dated),
            last_error=self.last_error,
            published_at=when.isoformat() if when else None,
            idle_s=round(time.monotonic() - self.active, 3),
            pending=pending,
            poll=poll,
            alarm=_alarm(watch.alarm),
            alarms=dict(watch.raised),
        )


def _alarm(alarm: Alarm | None) -> AlarmReport | None:
    if alarm is None:
        return None
    since = datetime.fromtimestamp(alarm.since, UTC).isoformat(timespec="seconds")
    return AlarmReport(event=alarm.event.value, since=since, sentence=alarm.sentence)
