"""Questions about a store: words, windows, sources, positions, maps. Answers are kept a while.

What compares windows is imported where it is needed, as in `reader.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from embedding.ask.config import AskConfig
from embedding.ask.reader import LaterError, Reader, waited
from embedding.kernel.errors import InputError, SnapshotError
from embedding.snapshots.evidence import DayCount, Evidence, EvidenceStore
from embedding.trends.axis import AxisCache, AxisHistory, axis_history
from embedding.trends.beside import Beside, UsualContexts, beside
from embedding.trends.bias import SourceBias, source_bias
from embedding.trends.evidence import NearWords, window_neighbours
from embedding.trends.findings import WordChange, word_change
from embedding.trends.mapping import NeighbourMap, neighbour_map
from embedding.trends.recent import Recent
from embedding.trends.rows import Story, TrendReport
from embedding.trends.stories import StoryDocuments, story_documents

if TYPE_CHECKING:
    from embedding.trends.contrast import Disagreement, SourceContrast
    from embedding.trends.history import Together, WordHistory

log = logging.getLogger(__name__)
A = TypeVar("A")
KEPT = 256
BESIDE_LOOKED_AT = 40
TOPIC_WORDS = 60
"""Words used alike that belong to a topic."""
EVIDENCE_SAMPLE = 200
"""Addresses of a word that are looked at where some sources are chosen."""


class Answers:
    """Computes over the snapshots that its reader keeps open; writes nothing.

    What takes long is waited for so many seconds; LaterError says that it takes longer.
    """

    def __init__(self, config: AskConfig, *, whole: bool = False) -> None:
        """whole: as for `Reader`."""
        self._config = config
        self._trends = config.trends
        self.reader = Reader(config, whole=whole)
        self._values: Recent[Any] = Recent(KEPT)
        self._slow: Recent[Future[Any]] = Recent(32)
        self._axes: AxisCache = {}
        self._evidence = None if config.evidence is None else EvidenceStore(config.evidence)

    @property
    def has_evidence(self) -> bool:
        return self._evidence is not None

    def beside(self, id: str, word: str) -> list[Beside]:
        """Words that stand beside a word in a window."""
        snapshot = self.reader.open(id)
        if snapshot.unreadable is not None:
            return []
        contexts: UsualContexts = self._kept(("contexts", id), lambda: UsualContexts.of(snapshot))
        return self._kept(
            ("beside", id, word), lambda: beside(snapshot, word, BESIDE_LOOKED_AT, contexts)
        )

    def about(self, id: str, topic: str) -> frozenset[str]:
        """Words that a window uses as it uses the topic; none without a topic."""
        if not topic:
            return frozenset()
        near: NearWords = self._kept(
            ("about", id, topic),
            lambda: window_neighbours(self.reader.open(id), topic, TOPIC_WORDS, self.reader.alike),
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
    ) -> list[Evidence]:
        """Documents of a window (ISO times) that hold the word; none where nobody kept any.

        sources  only these; none: all
        """
        if self._evidence is None:
            return []
        found = self._evidence.find(
            word,
            datetime.fromisoformat(start),
            datetime.fromisoformat(end),
            EVIDENCE_SAMPLE if sources else n,
        )
        own = [one for one in found if not sources or one.source in sources]
        return [one for one in own if one.url.startswith(("http://", "https://"))][:n]

    def days(self, words: Sequence[str], start: datetime, end: datetime) -> tuple[DayCount, ...]:
        """Documents of each day and source that hold each word; none where nobody kept any."""
        store = self._evidence
        if store is None:
            return ()
        return self._kept(
            ("days", *words, start, end, self._latest()),
            lambda: tuple(store.days(words, start, end)),
        )

    def together(self, first: str, second: str) -> tuple[Together, ...]:
        from embedding.trends.history import together

        return self._kept(
            ("together", first, second, self._latest()),
            lambda: together(self.reader, first, second, self._trends),
        )

    def map(self, word: str) -> NeighbourMap:
        neighbour_cache = self.reader.neighbour_cache
        return self._kept(
            ("map", word, self._latest()),
            lambda: neighbour_map(self.reader, word, self._trends, neighbour_cache=neighbour_cache),
        )

    def report(self, window: str, wait_s: float | None) -> TrendReport:
        """The report of a window, by its label, the id of its snapshot, or `latest`."""
        return self.reader.report(self.reader.named(window), wait_s)

    def word(self, word: str) -> WordHistory:
        """A word through all windows; InputError with the nearest spellings for an unknown one."""
        history = self.reader.history(word)
        if not history.known:
            raise self.unknown(word)
        return history

    def unknown(self, word: str) -> InputError:
        """That no snapshot holds a word, with the nearest spellings."""
        near = self.reader.vocabulary().nearest_spellings(word)
        about = f"the nearest spellings are {', '.join(near)}" if near else "none is near it"
        return InputError(f"word {word[:80]!r}: no snapshot holds it; {about}.")

    def axis(self, word: str, name: str) -> AxisHistory:
        """A word along one of the configured axes; raises InputError for an unknown one."""
        found = next((one for one in self._config.axes if one.name == name), None)
        if found is None:
            known = ", ".join(one.name for one in self._config.axes) or "none"
            raise InputError(f"axis {name[:40]!r}: there are {known}.")
        return self.between_poles(word, found.positive, found.negative, self._latest())

    def between_poles(
        self, word: str, positive: Sequence[str], negative: Sequence[str], id: str
    ) -> AxisHistory:
        """A word between two poles up to snapshot `id`.

        The words of an end that no window uses are passed over, and said as `poles`.
        """
        return self._kept(
            ("axis", word, *positive, "", *negative, id),
            lambda: axis_history(
                self.reader, word, positive, negative, self._trends, id=id, kept=self._axes
            ),
        )

    def contrast(
        self, first: str, second: str | None, id: str, wait_s: float | None
    ) -> SourceContrast:
        """second: a source, or None for all others together."""
        from embedding.trends.contrast import source_contrast

        return self._later(
            ("contrast", first, second, id),
            lambda: source_contrast(self.reader, first, second, self._trends, id=id),
            wait_s,
        )

    def disagreement(self, id: str, wait_s: float) -> Disagreement:
        from embedding.trends.contrast import disagreement

        return self._later(
            ("disagreement", id), lambda: disagreement(self.reader, self._trends, id=id), wait_s
        )

    def bias(self, id: str) -> SourceBias:
        """Which source a window's model serves worst, and proposed weights; raises InputError."""
        config = self._config
        return self._kept(
            ("bias", id),
            lambda: source_bias(self.reader, self._trends, id=id, weights=config.source_weights),
        )

    def change(self, word: str, wait_s: float | None) -> WordChange:
        """Since when a word is used differently, or is there."""
        # All that are missing are asked for, so that they are computed one after the other.
        reports, missing = [], False
        for ref in self.reader.list()[-self._trends.history_windows :]:
            try:
                reports.append(self.reader.report(ref.id, wait_s))
            except LaterError:
                missing = True
        if missing:
            raise LaterError
        return word_change(word, reports)

    def between(self, before: str, after: str, wait_s: float | None) -> TrendReport:
        from embedding.trends.between import build_between

        return self._later(
            ("between", before, after),
            lambda: build_between(self.reader, before, after, self._trends),
            wait_s,
        )

    def _latest(self) -> str:
        return self.reader.open().id

    def _kept(self, key: tuple[object, ...], make: Callable[[], A]) -> A:
        value: A = self._values.get(key, make)
        return value

    def _later(self, key: tuple[object, ...], make: Callable[[], A], wait_s: float | None) -> A:
        task: Future[A] = self._slow.get(key, lambda: self.reader.begin(make, wait_s))
        return waited(task, wait_s)
