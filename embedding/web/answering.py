"""Answers for programs: the page's figures and sentences as records of `/api/v1` and `yeoron mcp`.

A field that is a record of `embedding.trends` has its meaning there; OpenAPI shows both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from embedding.ask.answers import Answers
from embedding.snapshots.evidence import Evidence
from embedding.trends.contrast import SourceContrast
from embedding.trends.findings import findings_of
from embedding.trends.history import Together, WordHistory
from embedding.trends.material import figures
from embedding.trends.rows import (
    Note,
    Story,
    TrendReport,
    TrendRow,
    WindowFigures,
    WindowSource,
)
from embedding.trends.scoretable import WordScores
from embedding.web.findings import story_sentences
from embedding.web.links import PagePaths
from embedding.web.text import PageText


@dataclass(frozen=True)
class ErrorAnswer:
    """Why there is no answer, in one sentence."""

    error: str


@dataclass(frozen=True)
class DocumentAddress:
    """Where a document stands, who published it, on which day by the windows' clock; no text."""

    url: str
    source: str
    published: str


@dataclass(frozen=True, kw_only=True)
class StoryAnswer(Story):
    """Words that changed together, as `Story` has them, and what the page says of them.

    said          what happened and since when; who wrote it, and how sure that is
    first_day, last_day   of the documents whose addresses are kept; null where none are
    addresses     typical documents
    page          address of the window's page
    """

    said: tuple[str, str]
    first_day: str | None
    last_day: str | None
    addresses: tuple[DocumentAddress, ...]
    page: str


@dataclass(frozen=True)
class StoriesAnswer:
    """What happened in a window, surest first."""

    snapshot: WindowFigures
    compared_with: WindowFigures | None
    notes: tuple[Note, ...]
    stories: tuple[StoryAnswer, ...]


@dataclass(frozen=True)
class RankingAnswer:
    """One ranking of a window, surest first."""

    snapshot: WindowFigures
    compared_with: WindowFigures | None
    notes: tuple[Note, ...]
    ranking: str
    rows: tuple[TrendRow, ...]


@dataclass(frozen=True)
class WindowAnswer:
    """A window and what was read in it.

    findings  words that are findings; null while nobody has computed the window's report
    page      address of its page
    """

    window: WindowFigures
    findings: int | None
    page: str


@dataclass(frozen=True)
class WindowsAnswer:
    """All windows that can be read, oldest first."""

    windows: tuple[WindowAnswer, ...]


@dataclass(frozen=True)
class SourcesAnswer:
    """The sources of a window, most documents first."""

    snapshot: WindowFigures
    compared_with: WindowFigures | None
    sources: tuple[WindowSource, ...]


@dataclass(frozen=True)
class CompareAnswer:
    """Two words through all windows, and how near they stand (cosine; null: not both known)."""

    words: tuple[WordHistory, WordHistory]
    nearness: tuple[Together, ...]
    page: str


@dataclass(frozen=True)
class EvidenceAnswer:
    """Documents of a window that hold a word."""

    word: str
    window: str
    documents: tuple[DocumentAddress, ...]


@dataclass(frozen=True)
class ScoresAnswer:
    """The figures of every word that was compared, surest first.

    total   words that were compared; rows begins at `offset`
    rows    rank, word, z, p, q, significant, shift, expected, and counts before and now
    """

    snapshot: WindowFigures
    compared_with: WindowFigures | None
    total: int
    offset: int
    rows: tuple[Mapping[str, float | int | str | bool | None], ...]


API_WAIT_S = 60.0
"""Seconds that a program waits before it is told to ask again."""


@dataclass(frozen=True)
class Reading:
    """For whom an answer is.

    t      the texts of their language
    paths  addresses of pages, absolute
    """

    t: PageText
    paths: PagePaths


class ProgramAnswers:
    """Answers what a program asks, over what the pages read.

    A window is `latest`, a label (`2020-03`) or the id of a snapshot. Every method raises
    SnapshotError or InputError with one sentence, and LaterError where it takes too long.
    """

    def __init__(self, answers: Answers) -> None:
        self._reader = answers.reader
        self._answers = answers

    def report(self, window: str) -> TrendReport:
        self._reader.open(window)
        return self._answers.report(window, API_WAIT_S)

    def stories(self, window: str, limit: int | None, to: Reading) -> StoriesAnswer:
        """What happened in a window."""
        report = self.report(window)
        rows = tuple(self._story(one, report, to) for one in report.stories[:limit])
        return StoriesAnswer(report.snapshot, report.compared_with, report.notes, rows)

    def windows(self, to: Reading) -> WindowsAnswer:
        """All windows; no report is computed for it."""
        found = []
        for ref in self._reader.listing().refs:
            report = self._reader.known_report(ref.id)
            known = None if report is None else findings_of(report)
            about = figures(self._reader.open(ref.id))
            found.append(WindowAnswer(about, known, to.paths.window(ref.id)))
        return WindowsAnswer(tuple(found))

    def compare(self, first: str, second: str, to: Reading) -> CompareAnswer:
        """Two words through all windows."""
        words = (self._answers.word(first), self._answers.word(second))
        nearness = self._answers.together(first, second)
        return CompareAnswer(words, nearness, to.paths.compare(first, second))

    def sources(self, window: str) -> SourcesAnswer:
        report = self.report(window)
        return SourcesAnswer(report.snapshot, report.compared_with, report.by_source())

    def contrast(
        self, first: str, second: str, window: str, limit: int | None = None
    ) -> SourceContrast:
        """Words that two sources of a window use differently."""
        found = self._answers.contrast(first, second, self._reader.open(window).id, API_WAIT_S)
        return replace(found, rows=found.rows[:limit])

    def evidence(self, word: str, window: str, n: int) -> EvidenceAnswer:
        """Documents of a window that hold a word."""
        about = self._reader.open(window).manifest.window
        times = about.start.isoformat(), about.end.isoformat()
        found = self._answers.evidence(word, *times, n)
        return EvidenceAnswer(word, about.label, addresses(found))

    def scores(self, window: str, offset: int, limit: int) -> ScoresAnswer:
        """The figures of every word that was compared, `limit` of them from `offset` on."""
        report = self.report(window)
        found = self._reader.scores(report, API_WAIT_S)
        part = WordScores(found.table.slice(offset, limit), found.key)
        rows = tuple(part.rows())
        return ScoresAnswer(report.snapshot, report.compared_with, len(found), offset, rows)

    def _story(self, story: Story, report: TrendReport, to: Reading) -> StoryAnswer:
        where = self._answers.story_documents(story, report)
        days = () if where is None else (where.first, where.last)
        first, last = (None if day is None else day.isoformat() for day in days or (None, None))
        return StoryAnswer(
            **vars(story),
            said=story_sentences(story, report, to.t),
            first_day=first,
            last_day=last,
            addresses=() if where is None else addresses(where.documents),
            page=to.paths.window(report.snapshot.id),
        )


def addresses(found: Sequence[Evidence]) -> tuple[DocumentAddress, ...]:
    """Documents as programs read them."""
    return tuple(DocumentAddress(one.url, one.source, one.published.isoformat()) for one in found)


def absolute(paths: PagePaths, origin: str) -> PagePaths:
    """The same addresses with scheme and host."""
    return replace(paths, root=origin.rstrip("/") + paths.root)
