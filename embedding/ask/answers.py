"""What answers of a store are made of: open snapshots, addresses of documents, and what is kept a
while. The questions are in `questions.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from embedding.ask.config import AskConfig
from embedding.ask.reader import Reader, waited
from embedding.kernel.errors import InputError, SnapshotError
from embedding.snapshots.evidence import DayCount, Evidence, EvidenceStore
from embedding.trends.axis import AxisCache
from embedding.trends.beside import Beside, UsualContexts, beside
from embedding.trends.evidence import NearWords, window_neighbours
from embedding.trends.recent import Recent
from embedding.trends.rows import Story, TrendReport
from embedding.trends.stories import StoryDocuments, story_documents

log = logging.getLogger(__name__)
A = TypeVar("A")
KEPT = 256
BESIDE_LOOKED_AT = 40
TOPIC_WORDS = 60
"""Words used alike that belong to a topic."""
EVIDENCE_SAMPLE = 200
"""Addresses of a word that are looked at where some sources are chosen."""


class UnknownWordError(InputError):
    """No snapshot holds a word; nearest: the words that are spelt most like it."""

    def __init__(self, word: str, nearest: Sequence[str]) -> None:
        about = f"the nearest spellings are {', '.join(nearest)}" if nearest else "none is near it"
        super().__init__(f"word {word[:80]!r}: no snapshot holds it; {about}.")
        self.word, self.nearest = word, list(nearest)


class Answers:
    """Computes over the snapshots that its reader keeps open; writes nothing.

    What takes long is waited for so many seconds; LaterError says that it takes longer.
    """

    def __init__(self, config: AskConfig, *, whole: bool = False) -> None:
        """whole: as for `Reader`."""
        self.config = config
        self.reader = Reader(config, whole=whole)
        self._values: Recent[Any] = Recent(KEPT)
        self._slow: Recent[Future[Any]] = Recent(32)
        self.axes: AxisCache = {}
        self._evidence = None if config.evidence is None else EvidenceStore(config.evidence)

    @property
    def has_evidence(self) -> bool:
        return self._evidence is not None

    def beside(self, id: str, word: str) -> list[Beside]:
        """Words that stand beside a word in a window."""
        snapshot = self.reader.open(id)
        if snapshot.unreadable is not None:
            return []
        contexts: UsualContexts = self.kept(("contexts", id), lambda: UsualContexts.of(snapshot))
        return self.kept(
            ("beside", id, word), lambda: beside(snapshot, word, BESIDE_LOOKED_AT, contexts)
        )

    def about(self, id: str, topic: str) -> frozenset[str]:
        """Words that a window uses as it uses the topic; none without a topic."""
        if not topic:
            return frozenset()
        near: NearWords = self.kept(
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
        return self.kept(
            ("days", *words, start, end, self.latest()),
            lambda: tuple(store.days(words, start, end)),
        )

    def report(self, window: str, wait_s: float | None) -> TrendReport:
        """The report of a window, by its label, the id of its snapshot, or `latest`."""
        return self.reader.report(self.reader.named(window), wait_s)

    def unknown(self, word: str) -> UnknownWordError:
        """That no snapshot holds a word."""
        return UnknownWordError(word, self.reader.vocabulary().nearest_spellings(word))

    def latest(self) -> str:
        """The id of the latest snapshot."""
        return self.reader.open().id

    def kept(self, key: Hashable, make: Callable[[], A]) -> A:
        """What was made of this key, or is made now."""
        value: A = self._values.get(key, make)
        return value

    def computed(self, key: Hashable, make: Callable[..., A], *asked: object, **more: object) -> A:
        """What `make` finds in the store by the settings of comparisons, kept."""
        return self.kept(key, lambda: make(self.reader, *asked, self.config.trends, **more))

    def later(
        self,
        key: Hashable,
        wait_s: float | None,
        make: Callable[..., A],
        *asked: object,
        **more: object,
    ) -> A:
        """The same of what takes long: it is made after what was asked for before."""
        begun = partial(make, self.reader, *asked, self.config.trends, **more)
        task: Future[A] = self._slow.get(key, lambda: self.reader.begin(begun, wait_s))
        return waited(task, wait_s)
