"""Each question about a store, once: what is asked, and what answers it.

A question is a frozen dataclass. The first line of its docstring is its title, the rest says what
the answer holds, and `Field` says what a field means and takes. Whoever asks writes
`ContrastQuestion("news", "board").answer(answers)`: a page, a tool, a command, a method of
`yeoron.Store`. The routes of `/api/v1` are made of the questions themselves, and so is a page that
only shows an answer (`page_of`, `web/site.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import numpy as np
from pydantic import Field

from embedding.ask.answers import Answers, LaterError, SnapshotListing
from embedding.kernel.errors import InputError, SnapshotError
from embedding.kernel.records import FloatArray, SnapshotRef
from embedding.snapshots.evidence import Evidence
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import LATEST
from embedding.trends.axis import AxisHistory, axis_history
from embedding.trends.bias import SourceBias, source_bias
from embedding.trends.mapping import NeighbourMap, neighbour_map
from embedding.trends.material import figures
from embedding.trends.rows import (
    LOOKED_BACK,
    RANKINGS,
    Note,
    Story,
    TrendReport,
    TrendRow,
    WindowFigures,
    WindowSource,
    WordChange,
    WordScores,
    findings_of,
    last_with_findings,
    word_change,
)
from embedding.trends.stories import StoryDocuments

if TYPE_CHECKING:
    from embedding.trends.contrast import Disagreement, SourceContrast
    from embedding.trends.history import Together, WordHistory

A = TypeVar("A")
WindowName = Annotated[
    str, Field(description="A window (`2020-03`), the id of a snapshot, or `latest`.")
]
AnyWord = Annotated[str, Field(description="The word.")]
First = Annotated[str, Field(description="The first.")]
Second = Annotated[str, Field(description="The second.")]
RowLimit = Annotated[int | None, Field(ge=1, le=10_000, description="Rows at most.")]


class Question(ABC, Generic[A]):
    """What somebody asks of a store. Raises SnapshotError or InputError with one sentence."""

    @abstractmethod
    def answer(self, answers: Answers, wait_s: float | None = None) -> A:
        """The answer; LaterError where it takes longer than `wait_s`, None: however long."""

    @classmethod
    def title(cls) -> str:
        """What is asked, in a few words."""
        return (cls.__doc__ or "").partition("\n")[0].rstrip(".")

    @classmethod
    def about(cls) -> str:
        """What the answer holds."""
        return " ".join((cls.__doc__ or "").partition("\n")[2].split())


@dataclass(frozen=True)
class ReportQuestion(Question[TrendReport]):
    """The whole report of a window.

    All rankings, stories, notes and figures of one window.
    """

    window: WindowName = LATEST

    def answer(self, answers: Answers, wait_s: float | None = None) -> TrendReport:
        return answers.report(self.window, wait_s)


FoundStories = tuple[TrendReport, tuple[tuple[Story, StoryDocuments | None], ...]]
"""A report, its stories, and where each of them stands; None where addresses are not kept."""


@dataclass(frozen=True)
class StoriesQuestion(Question[FoundStories]):
    """What happened in a window.

    Words that changed together, surest first: sentences, figures, addresses of documents.
    The language of the sentences is that of `lang` or `Accept-Language`.
    """

    window: WindowName = LATEST
    limit: RowLimit = None

    def answer(self, answers: Answers, wait_s: float | None = None) -> FoundStories:
        report = answers.report(self.window, wait_s)
        chosen = report.stories[: self.limit]
        return report, tuple((story, answers.story_documents(story, report)) for story in chosen)


@dataclass(frozen=True)
class RankingAnswer:
    """One ranking of a window, surest first."""

    snapshot: WindowFigures
    compared_with: WindowFigures | None
    notes: tuple[Note, ...]
    ranking: str
    rows: tuple[TrendRow, ...]

    @classmethod
    def of(cls, report: TrendReport, name: str, limit: int | None = None) -> RankingAnswer:
        """The ranking `name` of a report; InputError for an unknown one."""
        if name not in RANKINGS:
            raise InputError(f"ranking {name[:80]!r}: there are {', '.join(RANKINGS)}.")
        rows = getattr(report, name)[:limit]
        return cls(report.snapshot, report.compared_with, report.notes, name, rows)


@dataclass(frozen=True)
class RankingQuestion(Question[RankingAnswer]):
    """Words of one ranking.

    Surest first; `significant` marks those that are findings.
    """

    ranking: str
    window: WindowName = LATEST
    limit: RowLimit = None

    def answer(self, answers: Answers, wait_s: float | None = None) -> RankingAnswer:
        report = answers.report(self.window, wait_s)
        return RankingAnswer.of(report, self.ranking, self.limit)


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


@dataclass(frozen=True)
class ScoresQuestion(Question[ScoresAnswer]):
    """Every word that was compared.

    How far each word moved and how sure that is, a part at a time.
    """

    window: WindowName = LATEST
    offset: Annotated[int, Field(ge=0, le=100_000_000, description="Rows to pass over.")] = 0
    limit: Annotated[int, Field(ge=1, le=10_000, description="Rows at most.")] = 1000

    def answer(self, answers: Answers, wait_s: float | None = None) -> ScoresAnswer:
        report = answers.report(self.window, wait_s)
        scores = answers.scores(report, wait_s)
        part = WordScores(scores.table.slice(self.offset, self.limit), scores.key)
        return ScoresAnswer(
            report.snapshot, report.compared_with, len(scores), self.offset, tuple(part.rows())
        )


@dataclass(frozen=True)
class WordQuestion(Question["WordHistory"]):
    """One word over time.

    A word through all windows: how often each source used it, how far it moved, what it is near.
    """

    word: AnyWord

    def answer(self, answers: Answers, wait_s: float | None = None) -> WordHistory:
        history = answers.history(self.word)
        if not history.known:
            raise answers.unknown(self.word)
        return history


@dataclass(frozen=True)
class WindowsQuestion(Question[tuple[tuple[WindowFigures, int | None], ...]]):
    """All windows.

    Each window with what was read in it, and how many words changed, where it is known.
    """

    def answer(
        self, answers: Answers, wait_s: float | None = None
    ) -> tuple[tuple[WindowFigures, int | None], ...]:
        known = [(ref.id, answers.known_report(ref.id)) for ref in answers.list()]
        return tuple(
            (figures(answers.open(id)), None if report is None else findings_of(report))
            for id, report in known
        )


@dataclass(frozen=True)
class SnapshotsQuestion(Question[SnapshotListing]):
    """All snapshots.

    The snapshots that can be read, and the ids of those that cannot.
    """

    def answer(self, answers: Answers, wait_s: float | None = None) -> SnapshotListing:
        return answers.listing()


@dataclass(frozen=True)
class NearestQuestion(Question[list[tuple[str, float]]]):
    """Words near a word.

    The words with the nearest vectors in the model at the end of a window, and how near each is;
    none where the model has not learnt enough (`Snapshot.unreadable`).
    """

    word: AnyWord
    window: WindowName = LATEST
    n: int = 10

    def answer(self, answers: Answers, wait_s: float | None = None) -> list[tuple[str, float]]:
        return self.of(answers.open(self.window))

    def of(self, snapshot: Snapshot) -> list[tuple[str, float]]:
        """The same of a snapshot that may lie outside of a store; InputError for other words."""
        words = snapshot.neighbours(self.word, self.n)
        return words if snapshot.unreadable is None else []


@dataclass(frozen=True)
class VectorsQuestion(Question[tuple[list[str], FloatArray]]):
    """Words and their vectors.

    float32 [n, dim]; those of `words` that a window has, in their order, or all of the window.
    """

    words: tuple[str, ...] | None = None
    window: WindowName = LATEST

    def answer(self, answers: Answers, wait_s: float | None = None) -> tuple[list[str], FloatArray]:
        snapshot = answers.open(self.window)
        if self.words is None:
            return list(snapshot.words), np.asarray(snapshot.vectors)
        rows = snapshot.rows(self.words)
        known = [word for word, row in zip(self.words, rows.tolist(), strict=True) if row >= 0]
        return known, snapshot.read_vectors(rows[rows >= 0])


@dataclass(frozen=True)
class WatchedCounts:
    """A word in a window: documents that hold it there and in the window before, and the rankings
    in which it is a finding.
    """

    word: str
    documents_before: int
    documents: int
    rankings: tuple[str, ...]


@dataclass(frozen=True)
class WatchedQuestion(Question[tuple[WatchedCounts, ...]]):
    """Watched words in a window.

    How many documents hold each, before and now, and whether it is a finding.
    """

    words: tuple[str, ...]
    window: WindowName = LATEST

    def answer(self, answers: Answers, wait_s: float | None = None) -> tuple[WatchedCounts, ...]:
        report = answers.report(self.window, wait_s)
        rankings, before = report.called(), report.compared_with
        now = answers.open(report.snapshot.id)
        then = None if before is None else answers.open(before.id)
        return tuple(
            WatchedCounts(w, _documents(then, w), _documents(now, w), rankings.get(w, ()))
            for w in dict.fromkeys(self.words)
        )


def _documents(snapshot: Snapshot | None, word: str) -> int:
    """Documents of a window that hold a word; 0 where it has no row, and for no window."""
    if snapshot is None or word not in snapshot:
        return 0
    return sum(documents for _, documents, _ in snapshot.source_counts(word).values())


@dataclass(frozen=True)
class SuggestQuestion(Question[dict[str, Any]]):
    """Words that begin so.

    Words of the latest window that begin with `q` or hold it, most frequent first.
    """

    q: str = ""
    n: Annotated[int, Field(ge=1, le=100)] = 10

    def answer(self, answers: Answers, wait_s: float | None = None) -> dict[str, Any]:
        known = answers.list()
        words = answers.vocabulary().suggest(self.q, self.n) if known else []
        return {"query": self.q, "words": words}


@dataclass(frozen=True)
class WordPair:
    """Two words through all windows, and how near they stand (cosine; null: not both known)."""

    words: tuple[WordHistory, WordHistory]
    nearness: tuple[Together, ...]


@dataclass(frozen=True)
class CompareQuestion(Question[WordPair]):
    """Two words over time.

    The histories of two words, and how near they stand in each window.
    """

    first: First
    second: Second

    def answer(self, answers: Answers, wait_s: float | None = None) -> WordPair:
        from embedding.trends.history import together

        first, second = (
            WordQuestion(word).answer(answers, wait_s) for word in (self.first, self.second)
        )
        key = (self, answers.open().id)
        nearness = answers.computed(key, together, self.first, self.second)
        return WordPair((first, second), nearness)


@dataclass(frozen=True)
class BetweenQuestion(Question[TrendReport]):
    """Any two windows.

    The report of a window against any earlier one, which need not be its neighbour.
    """

    then: First
    now: Second

    def answer(self, answers: Answers, wait_s: float | None = None) -> TrendReport:
        from embedding.trends.report import build_between

        then, now = (answers.open(window).id for window in (self.then, self.now))
        return answers.later(BetweenQuestion(then, now), wait_s, build_between, then, now)


@dataclass(frozen=True)
class LastFinding:
    """The last report with such a finding; else the last with any, and if some are not known."""

    report: TrendReport | None
    another: TrendReport | None = None
    unknown: bool = False


COMPUTED = 3
"""Windows whose reports are computed for it; of those further back known ones are read."""


@dataclass(frozen=True)
class LastFindingQuestion(Question[LastFinding]):
    """The last window before this one with a finding of these rankings."""

    window: WindowName = LATEST
    rankings: tuple[str, ...] = RANKINGS

    def answer(self, answers: Answers, wait_s: float | None = None) -> LastFinding:
        id, refs = answers.named(self.window), answers.list()
        start = next(ref.window_start for ref in refs if ref.id == id)
        before = [ref for ref in refs if ref.window_start < start]

        def known(ref: SnapshotRef) -> TrendReport | None:
            report = answers.known_report(ref.id)
            if report is None and ref in before[-COMPUTED:]:
                with suppress(SnapshotError):
                    report = answers.report(ref.id, wait_s)
            return report

        last = last_with_findings(before, known, self.rankings)
        if last is not None:
            return LastFinding(last)
        unknown = any(known(ref) is None for ref in before[-LOOKED_BACK:])
        return LastFinding(None, last_with_findings(before, known), unknown)


@dataclass(frozen=True)
class SourcesAnswer:
    """The sources of a window, most documents first."""

    snapshot: WindowFigures
    compared_with: WindowFigures | None
    sources: tuple[WindowSource, ...]


@dataclass(frozen=True)
class SourcesQuestion(Question[SourcesAnswer]):
    """The sources of a window.

    What each source brought, and how well the model serves it.
    """

    window: WindowName = LATEST

    def answer(self, answers: Answers, wait_s: float | None = None) -> SourcesAnswer:
        report = answers.report(self.window, wait_s)
        return SourcesAnswer(report.snapshot, report.compared_with, report.by_source())


@dataclass(frozen=True)
class ContrastQuestion(Question["SourceContrast"]):
    """Two sources of a window.

    Words that the two sources use differently, surest first.
    """

    first: First
    second: Second
    window: WindowName = LATEST
    limit: RowLimit = None

    def answer(self, answers: Answers, wait_s: float | None = None) -> SourceContrast:
        from embedding.trends.contrast import source_contrast

        id, pair = answers.open(self.window).id, (self.first, self.second or None)
        key = ContrastQuestion(self.first, self.second, id)
        contrast = answers.later(key, wait_s, source_contrast, *pair, id=id)
        return replace(contrast, rows=contrast.rows[: self.limit])


@dataclass(frozen=True)
class DisagreementQuestion(Question["Disagreement | None"]):
    """What the sources of a window disagree on.

    None where fewer than two brought something, or it is not known how they use words.
    """

    window: WindowName = LATEST

    def answer(self, answers: Answers, wait_s: float | None = None) -> Disagreement | None:
        from embedding.trends.contrast import disagreement

        snapshot = answers.open(self.window)
        id, documents = snapshot.id, snapshot.manifest.documents
        if sum(1 for n in documents.values() if n) < 2:
            return None
        with suppress(InputError, SnapshotError):
            return answers.later(DisagreementQuestion(id), wait_s, disagreement, id=id)
        return None


@dataclass(frozen=True)
class DocumentAddress:
    """Where a document stands, who published it, on which day by the windows' clock; no text."""

    url: str
    source: str
    published: str

    @classmethod
    def of(cls, documents: Sequence[Evidence]) -> tuple[DocumentAddress, ...]:
        """Those of documents."""
        return tuple(cls(page.url, page.source, page.published.isoformat()) for page in documents)


@dataclass(frozen=True)
class EvidenceAnswer:
    """Documents of a window that hold a word."""

    word: str
    window: str
    documents: tuple[DocumentAddress, ...]


@dataclass(frozen=True)
class EvidenceQuestion(Question[EvidenceAnswer]):
    """Documents that hold a word.

    Addresses of documents of a window, newest first; never their text.
    """

    word: AnyWord
    window: WindowName = LATEST
    n: Annotated[int, Field(ge=1, le=200, description="Documents at most.")] = 20

    def answer(self, answers: Answers, wait_s: float | None = None) -> EvidenceAnswer:
        about = answers.open(self.window).manifest.window
        times = about.start.isoformat(), about.end.isoformat()
        documents = answers.evidence(self.word, *times, self.n)
        return EvidenceAnswer(self.word, about.label, DocumentAddress.of(documents))


@dataclass(frozen=True)
class PolesQuestion(Question[AxisHistory]):
    """A word between the words of two ends, up to a window.

    Words of an end that no window uses are passed over, and said as `poles`.
    """

    word: AnyWord
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    window: WindowName = LATEST

    def answer(self, answers: Answers, wait_s: float | None = None) -> AxisHistory:
        id = answers.open(self.window).id
        asked = self.word, self.positive, self.negative
        key = PolesQuestion(*asked, id)
        return answers.computed(key, axis_history, *asked, id=id, cache=answers.axes)


@dataclass(frozen=True)
class AxisQuestion(Question[AxisHistory]):
    """A word between two ends.

    Where a word stands on one of the page's axes, by source and over time.
    """

    word: AnyWord
    name: str

    def answer(self, answers: Answers, wait_s: float | None = None) -> AxisHistory:
        axes = {axis.name: axis for axis in answers.config.axes}
        if self.name not in axes:
            known = ", ".join(axes) or "none"
            raise InputError(f"axis {self.name[:40]!r}: there are {known}.")
        axis = axes[self.name]
        return PolesQuestion(self.word, axis.positive, axis.negative).answer(answers, wait_s)


@dataclass(frozen=True)
class ChangeQuestion(Question[WordChange]):
    """When a word changed.

    The window since which a word is used differently, if one stands out.
    """

    word: AnyWord

    def answer(self, answers: Answers, wait_s: float | None = None) -> WordChange:
        # All that are missing are asked for, to be computed in turn; the first alone is waited for.
        reports, missing = [], False
        for ref in answers.list()[-answers.config.trends.history_windows :]:
            try:
                reports.append(answers.report(ref.id, 0 if missing else wait_s))
            except LaterError:
                missing = True
        if missing:
            raise LaterError
        return word_change(self.word, reports)


@dataclass(frozen=True)
class BiasQuestion(Question[SourceBias]):
    """Whom the model serves worst.

    Losses by source, and weights of the sources that would even them.
    """

    window: WindowName = LATEST

    def answer(self, answers: Answers, wait_s: float | None = None) -> SourceBias:
        id, weights = answers.open(self.window).id, answers.config.source_weights
        return answers.computed(BiasQuestion(id), source_bias, id=id, weights=weights)


@dataclass(frozen=True)
class MapQuestion(Question[NeighbourMap]):
    """A word's map.

    A word and its neighbours in two dimensions through all windows.
    """

    word: AnyWord

    def answer(self, answers: Answers, wait_s: float | None = None) -> NeighbourMap:
        WordQuestion(self.word).answer(answers, wait_s)
        key, near = (self, answers.open().id), answers.neighbour_cache
        return answers.computed(key, neighbour_map, self.word, neighbour_cache=near)


QUESTIONS: dict[str, type[Question[Any]]] = {
    "report": ReportQuestion,
    "stories": StoriesQuestion,
    "word": WordQuestion,
    "windows": WindowsQuestion,
    "scores": ScoresQuestion,
    "snapshots": SnapshotsQuestion,
    "suggest": SuggestQuestion,
    "compare": CompareQuestion,
    "between": BetweenQuestion,
    "sources": SourcesQuestion,
    "contrast": ContrastQuestion,
    "evidence": EvidenceQuestion,
    "axis": AxisQuestion,
    "since": ChangeQuestion,
    "bias": BiasQuestion,
    "map": MapQuestion,
}
"""By their names under `/api/v1`."""
