"""A store that is asked: snapshots kept open, reports finished or computed, addresses of documents,
and what is kept a while. The questions are in `questions.py`.

What compares windows is imported where it is needed: a finished report needs none of it.
"""

from __future__ import annotations

import logging
import resource
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from embedding.ask.config import AskConfig
from embedding.ask.search import SearchVocabulary
from embedding.kernel.errors import InputError, SnapshotError
from embedding.kernel.records import SnapshotRef
from embedding.snapshots.evidence import DayCount, Evidence, EvidenceStore
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import LATEST, SnapshotStore
from embedding.trends import storage
from embedding.trends.recent import Fresh, Recent
from embedding.trends.rows import SCORES_COLUMNS, Story, TrendReport, WordScores
from embedding.trends.storage import FinishedReports
from embedding.trends.stories import StoryDocuments, story_documents

if TYPE_CHECKING:
    from embedding.trends.axis import AxisCache
    from embedding.trends.beside import Beside
    from embedding.trends.history import WordHistory
    from embedding.trends.likeness import UsedAlike
    from embedding.trends.nearest import NeighbourCache

log = logging.getLogger(__name__)
A = TypeVar("A")
OPEN_SNAPSHOTS = 64
"""Snapshots kept open (memory-mapped) between requests."""
MOST_MAPPED = 200_000_000
"""Bytes of pages of mapped files (of programs, too) that may stay in this process; beyond it, those
of snapshots are let go and mapped again when they are needed."""
BESIDE_LOOKED_AT = 40
TOPIC_WORDS = 60
"""Words used alike that belong to a topic."""
EVIDENCE_SAMPLE = 200
"""Addresses of a word that are looked at where some sources are chosen."""


class LaterError(Exception):
    """The answer is still being computed: ask again."""


class UnknownWordError(InputError):
    """No snapshot holds a word; nearest: the words that are spelt most like it."""

    def __init__(self, word: str, nearest: Sequence[str]) -> None:
        about = f"the nearest spellings are {', '.join(nearest)}" if nearest else "none is near it"
        super().__init__(f"word {word[:80]!r}: no snapshot holds it; {about}.")
        self.word, self.nearest = word, list(nearest)


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
        self._seen: set[str] = set()
        self._turn = threading.Lock()

    def check(self, snapshot: Snapshot) -> None:
        """Compare this one when those before it are done; a snapshot is compared once."""
        if snapshot.id not in self._seen:
            self._seen.add(snapshot.id)
            threading.Thread(target=self._compare, args=(snapshot,), daemon=True).start()

    def _compare(self, snapshot: Snapshot) -> None:
        with self._turn:
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


class Answers:
    """Reads a store of snapshots, reports and addresses, and computes over them; writes nothing.

    It is a `trends.material.Snapshots`: reports and histories are computed over the snapshots
    that it keeps open. What takes long is waited for so many seconds; LaterError says that it takes
    longer.

    whole  each snapshot is compared with its checksums when it is opened, not some time later
    """

    def __init__(self, config: AskConfig, *, whole: bool = False) -> None:
        self.config, self._whole = config, whole
        self.store = SnapshotStore(config.snapshots)
        self.checksums = Checksums()
        self.axes: AxisCache = {}
        self._evidence = None if config.evidence is None else EvidenceStore(config.evidence)
        self._listing: Fresh[SnapshotListing] = Fresh(config.refresh_s)
        self._snapshots: Recent[Snapshot] = Recent(OPEN_SNAPSHOTS)
        self._histories: Recent[WordHistory] = Recent(512)
        self._vocabularies: Recent[SearchVocabulary] = Recent(2)
        self._saved: Recent[TrendReport | None] = Recent(OPEN_SNAPSHOTS)
        self._computed: Recent[Future[TrendReport]] = Recent(OPEN_SNAPSHOTS)
        self._values: Recent[Any] = Recent(256)
        self._slow: Recent[Future[Any]] = Recent(32)
        # One at a time: a report takes both cores, and answers of pages come first.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="trend-report")

    @cached_property
    def neighbour_cache(self) -> NeighbourCache:
        from embedding.trends.nearest import NeighbourCache

        return NeighbourCache(keep=OPEN_SNAPSHOTS)

    @cached_property
    def alike(self) -> UsedAlike:
        from embedding.trends.likeness import UsedAlike

        return UsedAlike(self.config.trends, OPEN_SNAPSHOTS)

    @property
    def has_evidence(self) -> bool:
        return self._evidence is not None

    def listing(self) -> SnapshotListing:
        """All snapshots, read again when the last reading is older than `refresh_s`."""
        return self._listing.get(self._list)

    def _list(self) -> SnapshotListing:
        damaged = dict(self.checksums.damaged)
        refs = tuple(ref for ref in self.store.list() if ref.id not in damaged)
        finished = FinishedReports(refs, self.config.trends, self.config.reports)
        return SnapshotListing(refs, self.store.broken() | damaged, finished)

    def sources(self, window: str = LATEST) -> tuple[str, ...]:
        """The sources of a window, most documents first; none in an empty store."""
        documents = self.open(window).manifest.documents if self.listing().refs else {}
        return tuple(sorted(documents, key=lambda name: (-documents[name], name)))

    def timezone(self) -> str:
        """That of its windows and days: as the latest one says."""
        refs = self.listing().refs
        return self.open(refs[-1].id).manifest.timezone if refs else "UTC"

    def window_days(self) -> tuple[str, str]:
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

    def report(self, window: str = LATEST, wait_s: float | None = 3.0) -> TrendReport:
        """The report of a window, by its label, the id of its snapshot, or `latest`: the finished
        one, else computed. Raises SnapshotError when the snapshot cannot be read.
        """
        id = self.named(window)
        finished = self.finished_report(id)
        return self._compute(id, wait_s) if finished is None else finished

    def scores(self, report: TrendReport, wait_s: float | None) -> WordScores:
        """The figures of every word that a report compared: the finished ones, else computed."""
        if report.scores is not None:
            return report.scores
        id = report.snapshot.id
        return self.listing().finished.scores(id) or self.scores(self._compute(id, wait_s), None)

    def scores_of(self, words: Sequence[str], report: TrendReport) -> Sequence[dict[str, Any]]:
        """The figures of some words in their order, and as `reason` why one was not compared."""
        from embedding.trends.moved import why_not

        known, before = self.scores(report, None).of(words), report.compared_with
        then = None if before is None else self.open(before.id)
        unknown = [word for word in words if word not in known]
        reasons = why_not(unknown, then, self.open(report.snapshot.id), self.config.trends)
        empty = dict.fromkeys(SCORES_COLUMNS)
        return [
            {**empty, **known.get(word, {}), "word": word, "reason": reasons.get(word)}
            for word in words
        ]

    def _compute(self, id: str, wait_s: float | None) -> TrendReport:
        from embedding.trends.report import build_report

        self.open(id)
        make = partial(build_report, self, id, self.config.trends, self.config.reports)
        key = (id, self.listing().finished.key(id))
        return waited(self._computed.get(key, lambda: self._begin(make, wait_s)), wait_s)

    def finished_report(self, id: str) -> TrendReport | None:
        """The finished report of a snapshot (`FinishedReports`), kept until its file changes."""
        finished, folder = self.listing().finished, self.config.reports
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

    def newest_reports(self, refs: Sequence[SnapshotRef]) -> Iterator[TrendReport]:
        """The reports of windows that need no computing, newest first; that of the newest is
        computed, and passed over where it takes longer.
        """
        for at, ref in enumerate(reversed(refs)):
            with suppress(LaterError):
                report = self.known_report(ref.id) if at else self.report(ref.id)
                if report is not None:
                    yield report

    def _begin(self, make: Callable[[], A], wait_s: float | None) -> Future[A]:
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
            for ref in refs[-self.config.trends.history_windows :]:
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
        near, alike = self.neighbour_cache, self.alike
        return self._histories.get(
            key,
            lambda: word_history(self, word, self.config.trends, neighbour_cache=near, alike=alike),
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

    def unknown(self, word: str) -> UnknownWordError:
        """That no snapshot holds a word."""
        return UnknownWordError(word, self.vocabulary().nearest_spellings(word))

    def beside(self, id: str, word: str) -> Sequence[Beside]:
        """Words that stand beside a word in a window."""
        from embedding.trends.beside import UsualContexts, beside

        snapshot = self.open(id)
        if snapshot.unreadable is not None:
            return []
        contexts = self.kept(("contexts", id), lambda: UsualContexts.of(snapshot))
        return self.kept(
            ("beside", id, word), lambda: beside(snapshot, word, BESIDE_LOOKED_AT, contexts)
        )

    def about(self, id: str, topic: str) -> frozenset[str]:
        """Words that a window uses as it uses the topic; none without a topic."""
        from embedding.trends.evidence import window_neighbours

        if not topic:
            return frozenset()
        near = self.kept(
            ("about", id, topic),
            lambda: window_neighbours(self.open(id), topic, TOPIC_WORDS, self.alike),
        )
        return frozenset(word for word, _ in near.words)

    def story_documents(self, story: Story, report: TrendReport) -> StoryDocuments | None:
        """Where a story stands; None where addresses are not kept or cannot be read."""
        try:
            return story_documents(story, report, self._evidence)
        except SnapshotError as error:
            log.warning("documents of story %s: %s", story.id, error)
            return None

    def evidence(
        self, word: str, start: str, end: str, n: int = 12, sources: Sequence[str] = ()
    ) -> Sequence[Evidence]:
        """Documents of a window (ISO times) that hold the word; none where nobody kept any.

        sources  only these; none: all
        """
        if self._evidence is None:
            return []
        times = datetime.fromisoformat(start), datetime.fromisoformat(end)
        documents = self._evidence.find(word, *times, EVIDENCE_SAMPLE if sources else n)
        return [
            document
            for document in documents
            if (not sources or document.source in sources)
            and document.url.startswith(("http://", "https://"))
        ][:n]

    def days(self, words: Sequence[str], start: datetime, end: datetime) -> tuple[DayCount, ...]:
        """Documents of each day and source that hold each word; none where nobody kept any."""
        store = self._evidence
        if store is None:
            return ()
        return self.kept(
            ("days", *words, start, end, self.named()), lambda: tuple(store.days(words, start, end))
        )

    def kept(self, key: Hashable, make: Callable[[], A]) -> A:
        """What was made of this key, or is made now."""
        value: A = self._values.get(key, make)
        return value

    def computed(self, key: Hashable, make: Callable[..., A], *asked: object, **more: object) -> A:
        """What `make` finds in the store by the settings of comparisons, kept."""
        return self.kept(key, lambda: make(self, *asked, self.config.trends, **more))

    def later(
        self,
        key: Hashable,
        wait_s: float | None,
        make: Callable[..., A],
        *asked: object,
        **more: object,
    ) -> A:
        """The same of what takes long: it is made after what was asked for before."""
        begun = partial(make, self, *asked, self.config.trends, **more)
        task: Future[A] = self._slow.get(key, lambda: self._begin(begun, wait_s))
        return waited(task, wait_s)
