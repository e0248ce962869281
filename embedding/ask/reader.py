"""A store that is asked: snapshots kept open, reports finished or computed, histories.

What compares windows is imported where it is needed: a finished report needs none of it.
"""

from __future__ import annotations

import logging
import queue
import resource
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from embedding.ask.config import AskConfig
from embedding.ask.search import SearchVocabulary
from embedding.kernel.errors import SnapshotError
from embedding.kernel.records import SnapshotRef
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import LATEST, SnapshotStore
from embedding.trends import storage
from embedding.trends.recent import Fresh, Recent
from embedding.trends.rows import TrendReport
from embedding.trends.scoretable import WordScores
from embedding.trends.storage import FinishedReports

if TYPE_CHECKING:
    from embedding.trends.history import WordHistory
    from embedding.trends.likeness import UsedAlike
    from embedding.trends.nearest import NeighbourCache

log = logging.getLogger(__name__)
A = TypeVar("A")


class LaterError(Exception):
    """The answer is still being computed: ask again."""


def waited(task: Future[A], wait_s: float | None) -> A:
    """What a task computes; LaterError after so many seconds, None: however long it takes."""
    try:
        return task.result(timeout=wait_s)
    except Late:
        raise LaterError from None


class Checksums:
    """Takes opened snapshots, and compares their digests in the background, since files can rot
    unseen; `damaged` names those whose files are not what was published."""

    def __init__(self) -> None:
        self.damaged: dict[str, str] = {}
        self._waiting: queue.SimpleQueue[Snapshot] = queue.SimpleQueue()
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def check(self, snapshot: Snapshot) -> None:
        """Compare this one when those before it are done; a snapshot is compared once."""
        with self._lock:
            if snapshot.id in self._seen:
                return
            self._seen.add(snapshot.id)
            self._waiting.put(snapshot)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checksums", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                snapshot = self._waiting.get(timeout=1.0)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._thread = None
                        return
                continue
            try:
                snapshot.verify()
            except SnapshotError as error:
                log.warning("%s", error)
                self.damaged[snapshot.id] = str(error)
            except OSError as error:
                log.warning("snapshot %s: not compared: %s", snapshot.id, error)


@dataclass(frozen=True)
class SnapshotListing:
    """The snapshots of the store, the sentences about those that cannot be read, and the reports
    that are finished."""

    refs: tuple[SnapshotRef, ...]
    broken: dict[str, str]
    finished: FinishedReports


OPEN_SNAPSHOTS = 64
"""Snapshots kept open (memory-mapped) between requests."""
MOST_MAPPED = 200_000_000
"""Bytes of pages of mapped files (of programs, too) that may stay in this process; beyond it, those
of snapshots are let go and mapped again when they are needed."""


class Reader:
    """Reads a snapshot store and a folder of reports; writes nothing.

    It is a `trends.material.Snapshots`: reports and histories are computed over the snapshots
    that it keeps open.

    whole  each snapshot is compared with its checksums when it is opened, not some time later
    """

    def __init__(self, config: AskConfig, *, whole: bool = False) -> None:
        self._config, self._whole = config, whole
        self.store = SnapshotStore(config.snapshots)
        self._snapshots: Recent[Snapshot] = Recent(OPEN_SNAPSHOTS)
        self._histories: Recent[WordHistory] = Recent(512)
        self.checksums = Checksums()
        self._vocabularies: Recent[SearchVocabulary] = Recent(2)
        self._saved: Recent[TrendReport | None] = Recent(OPEN_SNAPSHOTS)
        self._computed: Recent[Future[TrendReport]] = Recent(OPEN_SNAPSHOTS)
        # One at a time: a report takes both cores, and answers of pages come first.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="trend-report")
        self._listing: Fresh[SnapshotListing] = Fresh(config.refresh_s)

    @cached_property
    def neighbour_cache(self) -> NeighbourCache:
        from embedding.trends.nearest import NeighbourCache

        return NeighbourCache(keep=OPEN_SNAPSHOTS)

    @cached_property
    def alike(self) -> UsedAlike:
        from embedding.trends.likeness import UsedAlike

        return UsedAlike(self._config.trends, OPEN_SNAPSHOTS)

    def listing(self) -> SnapshotListing:
        """All snapshots, read again when the last reading is older than `refresh_s`."""
        return self._listing.get(self._list)

    def _list(self) -> SnapshotListing:
        damaged = dict(self.checksums.damaged)
        refs = tuple(ref for ref in self.store.list() if ref.id not in damaged)
        finished = FinishedReports(refs, self._config.trends, self._config.reports)
        return SnapshotListing(refs, self.store.broken() | damaged, finished)

    def sources(self) -> tuple[str, ...]:
        """The sources of the latest window, most documents first."""
        refs = self.listing().refs
        documents = self.open(refs[-1].id).manifest.documents if refs else {}
        return tuple(sorted(documents, key=lambda name: (-documents[name], name)))

    def timezone(self) -> str:
        """That of its windows and days: as the latest one says."""
        refs = self.listing().refs
        return self.open(refs[-1].id).manifest.timezone if refs else "UTC"

    def days(self) -> tuple[str, str]:
        """The first and the last day of all windows, in ISO format; empty where there are none."""
        refs = self.listing().refs
        if not refs:
            return "", ""
        last = refs[-1].window_end - timedelta(microseconds=1)
        return f"{refs[0].window_start:%Y-%m-%d}", f"{last:%Y-%m-%d}"

    def list(self) -> list[SnapshotRef]:
        return [*self.listing().refs]

    def named(self, window: str = LATEST) -> str:
        """The id of a window's snapshot, or of the latest; an id as it is. Opens none of them."""
        refs = self.listing().refs
        if window != LATEST:
            # The last of a window that was cut again counts.
            return next((ref.id for ref in reversed(refs) if ref.label == window), window)
        if not refs:
            self.store.open()  # says that it holds none
            raise SnapshotError(next(iter(self.listing().broken.values())))
        return refs[-1].id

    def open(self, id: str = LATEST) -> Snapshot:
        """One snapshot by its id or its window's label, kept open; raises SnapshotError."""
        id = self.named(id)
        if id in self.checksums.damaged:
            raise SnapshotError(self.checksums.damaged[id])
        snapshot = self._snapshots.get(id, lambda: self._opened(id))
        if not self._whole:
            self.checksums.check(snapshot)
        return snapshot

    def _opened(self, id: str) -> Snapshot:
        snapshot = self.store.open(id)
        if self._whole:
            snapshot.verify()
        return snapshot

    def report(self, id: str, wait_s: float | None = 3.0) -> TrendReport:
        """The report of a snapshot: the finished one, else computed.

        Raises LaterError while it is still being computed after `wait_s` seconds, SnapshotError
        when the snapshot cannot be read.
        """
        finished = self.finished_report(id)
        return self._compute(id, wait_s) if finished is None else finished

    def scores(self, report: TrendReport, wait_s: float | None) -> WordScores:
        """The figures of every word that a report compared: the finished ones, else computed.

        Raises LaterError while they are still being computed after `wait_s` seconds.
        """
        known = report.scores or self.listing().finished.scores(report.snapshot.id)
        return known or self._compute(report.snapshot.id, wait_s).every_word

    def _compute(self, id: str, wait_s: float | None) -> TrendReport:
        from embedding.trends.report import build_report

        self.open(id)
        config, folder = self._config.trends, self._config.reports
        key = (id, self.listing().finished.key(id))
        make = partial(build_report, self, id, config, folder)
        return waited(self._computed.get(key, lambda: self.begin(make, wait_s)), wait_s)

    def finished_report(self, id: str) -> TrendReport | None:
        """The finished report of a snapshot (`FinishedReports`), kept until its file changes."""
        finished, folder = self.listing().finished, self._config.reports
        try:
            path = None if folder is None else folder / id / storage.REPORT
            changed = None if path is None else path.stat().st_mtime_ns
        except OSError:
            return None
        return self._saved.get((finished.key(id), changed), lambda: finished.report(id))

    def known_report(self, id: str) -> TrendReport | None:
        """The report of a snapshot when it needs no computing."""
        finished = self.finished_report(id)
        task = None if finished else self._computed.peek((id, self.listing().finished.key(id)))
        if task is not None and task.done() and task.exception() is None:
            return task.result()
        return finished

    def begin(self, make: Callable[[], A], wait_s: float | None) -> Future[A]:
        """Compute something that takes long, after what was asked for before; here and now for
        whoever waits however long it takes.
        """
        if wait_s is not None:
            return self._worker.submit(make)
        done: Future[A] = Future()
        done.set_result(make())
        return done

    def warm(self) -> None:
        """Read the frequent words of all windows before somebody waits for them."""
        try:
            refs = self.listing().refs
            for ref in refs[-self._config.trends.history_windows :]:
                self.neighbour_cache.of(self.open(ref.id))
                self.alike.of(self.open(ref.id))
            if refs:
                self.vocabulary().suggest("가", 1)
        except Exception as error:  # noqa: BLE001 - whoever asks for it gets the sentence
            log.warning("not read ahead: %s", error)

    def history(self, word: str) -> WordHistory:
        """A word through all windows, kept until a snapshot is added; raises SnapshotError."""
        from embedding.trends.history import word_history

        self.named()
        key = (word, tuple(ref.id for ref in self.listing().refs))
        self._trim()
        return self._histories.get(
            key,
            lambda: word_history(
                self,
                word,
                self._config.trends,
                neighbour_cache=self.neighbour_cache,
                alike=self.alike,
            ),
        )

    def _trim(self) -> None:
        """Let go of the pages of snapshots' files when this process holds too many of them."""
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[2])
        except (OSError, IndexError, ValueError):
            return
        if pages * resource.getpagesize() > MOST_MAPPED:
            for snapshot in self._snapshots.values():
                snapshot.release()

    def vocabulary(self) -> SearchVocabulary:
        """The words of the latest snapshot, searchable; raises SnapshotError."""
        snapshot = self.open()
        return self._vocabularies.get(
            snapshot.id, lambda: SearchVocabulary(snapshot.words, snapshot.counts)
        )
