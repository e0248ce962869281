"""A source's yield under watch: alarms are told, and what is usual outlives a restart."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from embedding.crawl.config import CrawlConfig
from embedding.crawl.learnt import SourceStates
from embedding.crawl.patience import Patience
from embedding.crawl.staleness import YieldWatch
from embedding.sources.config import SourceConfig

log = logging.getLogger(__name__)

_SAVE = 60.0
"""Seconds between two savings, and so what a killed process forgets at most."""


class Watching:
    """The `YieldWatch` of one source, fed with this moment's time."""

    def __init__(
        self, source: SourceConfig, config: CrawlConfig, store: SourceStates, patience: Patience
    ) -> None:
        self.watch = YieldWatch(source.timezone, source.every, config)
        self._name = source.name
        self._store = store
        # Without the database the watch goes on; what is usual is learnt again after a restart.
        self._patience = patience
        self._saved = time.monotonic()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Go on with what was learnt before, and keep at the end what is learnt meanwhile."""
        found = self._patience.attempt(self._store.load, self._name, time.time())
        if found is not None:
            self.watch.restore(*found)
        try:
            yield
        finally:
            self._save()

    def note(self, note: Callable[..., None], *what: object) -> None:
        """Tell the watch something (`watch.polled` and its like); log an alarm's begin and end."""
        before = self.watch.alarm
        note(time.time(), *what)
        alarm = self.watch.alarm
        if alarm is not None and alarm is not before:
            log.warning("source %s: alarm %s: %s.", self._name, alarm.event.value, alarm.sentence)
        elif before is not None and alarm is None:
            log.info("source %s: the alarm %s is over.", self._name, before.event.value)
        if time.monotonic() - self._saved >= _SAVE:
            self._save()

    def _save(self) -> None:
        self._saved = time.monotonic()
        self._patience.attempt(self._store.save, self._name, self.watch.state(), time.time())
