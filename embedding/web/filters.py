"""What a reader asked to see alone: some time, some sources, one topic.

A filter stands in the address (`?from=2020-01-01&to=2020-03-31&source=news&topic=virus`), and every
link of a filtered page keeps it. It chooses windows, rows and sources. Documents and rates are
those of the sources chosen. How clear a row is stays as it was tested, over all sources; authors
are left out, as they are not known by source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from starlette.datastructures import QueryParams

from embedding.kernel.errors import KeyedError
from embedding.kernel.records import SnapshotRef
from embedding.trends.contrast import Disagreement
from embedding.trends.history import HistoryPoint, WordHistory, totals_of
from embedding.trends.rows import RANKINGS, Story, StoryWord, TrendReport, TrendRow, WindowFigures

FILTER_NAMES = ("from", "to", "source", "topic")
"""The parameters of an address that make a filter."""
MOST_CHOSEN_SOURCES = 50
LONGEST_CHOICE = 200
"""Characters of a source's name or a topic."""


@dataclass(frozen=True)
class PageFilter:
    """What is shown alone; an empty field leaves nothing out.

    first, last  days of the windows' time zone, both included: windows that hold one of them
    sources      names of sources; topic: a word
    """

    first: date | None = None
    last: date | None = None
    sources: tuple[str, ...] = ()
    topic: str = ""

    @classmethod
    def of(cls, params: QueryParams) -> PageFilter:
        """The filter of an address; raises KeyedError."""
        first, last = _day(params, "from"), _day(params, "to")
        if first is not None and last is not None and first > last:
            raise KeyedError("filter_order", f"from {first} lies after to {last}.")
        named = [name.strip() for name in params.getlist("source") if name.strip()]
        sources = tuple(dict.fromkeys(named))
        topic = params.get("topic", "").strip()
        if len(sources) > MOST_CHOSEN_SOURCES or any(
            len(text) > LONGEST_CHOICE for text in (*sources, topic)
        ):
            raise KeyedError(
                "filter_long",
                f"a filter takes at most {MOST_CHOSEN_SOURCES} sources, and names of "
                f"{LONGEST_CHOICE} characters.",
            )
        return cls(first, last, sources, topic)

    def __bool__(self) -> bool:
        return self != PageFilter()

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Names and values as they stand in an address."""
        days = (("from", self.first), ("to", self.last))
        chosen = [(name, day.isoformat()) for name, day in days if day is not None]
        chosen += [("source", name) for name in self.sources]
        return (*chosen, *([("topic", self.topic)] if self.topic else []))

    def covers(self, start: datetime, end: datetime) -> bool:
        """Whether a window from `start` to before `end` holds a day that was asked for."""
        last = (end - timedelta(microseconds=1)).date()
        late = self.first is not None and last < self.first
        early = self.last is not None and start.date() > self.last
        return not late and not early

    def refs(self, refs: Sequence[SnapshotRef]) -> tuple[SnapshotRef, ...]:
        return tuple(ref for ref in refs if self.covers(ref.window_start, ref.window_end))

    def chooses(self, source: str) -> bool:
        return not self.sources or source in self.sources

    def report(self, report: TrendReport, near: Collection[str]) -> TrendReport:
        """The rows and stories that the sources chosen have, and that are about the topic.

        near  words that the window uses as it uses the topic
        """
        if not self.sources and not self.topic:
            return report
        before = report.compared_with
        chosen = replace(
            report,
            snapshot=self._window(report.snapshot),
            compared_with=None if before is None else self._window(before),
        )
        rows: dict[str, Any] = {
            name: tuple(
                self._own(row, chosen) for row in getattr(report, name) if self._row(row, near)
            )
            for name in RANKINGS
        }
        stories = [self._story_own(s, rows) for s in report.stories if self._story(s, near)]
        return replace(chosen, **rows, stories=tuple(stories))

    def _own(self, row: TrendRow, report: TrendReport) -> TrendRow:
        """With the figures of the sources chosen, of which `report` says what they brought."""
        if not self.sources:
            return row
        own = tuple(use for use in row.sources if self.chooses(use.source))
        before = report.compared_with
        documents = [sum(use.documents_before for use in own), sum(use.documents for use in own)]
        read = [0 if before is None else before.total_documents, report.snapshot.total_documents]
        rates = [1000.0 * n / max(of, 1) for n, of in zip(documents, read, strict=True)]
        return replace(
            row,
            documents_before=documents[0],
            documents=documents[1],
            authors_before=None,
            authors=None,
            rate_before=rates[0],
            rate=rates[1],
            rate_usual=None,
            sources=own,
        )

    def _story_own(self, story: Story, rows: Mapping[str, Sequence[TrendRow]]) -> Story:
        """The same of a story; of words beyond the rows nothing more is known."""
        if not self.sources:
            return story
        own = {row.word: row for ranking in rows.values() for row in ranking}
        words = tuple(
            StoryWord(w.word, w.role, w.q, row.documents_before, row.documents)
            for w in story.words
            if (row := own.get(w.word)) is not None
        )
        sources = tuple(filter(self.chooses, story.sources))
        return replace(story, words=words or story.words, sources=sources)

    def disagreement(self, disagreement: Disagreement, near: Collection[str]) -> Disagreement:
        """What the sources chosen use differently, and what is about the topic."""
        uses = tuple(
            odd
            for odd in disagreement.uses
            if self.chooses(odd.source) and self._about(odd.use.word, near)
        )
        return replace(disagreement, uses=uses)

    def history(self, history: WordHistory) -> WordHistory:
        """The windows asked for, with the figures of the sources chosen."""
        if not self.first and not self.last and not self.sources:
            return history
        points = [
            self._point(point)
            for point in history.points
            if self.covers(*(datetime.fromisoformat(at) for at in (point.start, point.end)))
        ]
        return replace(history, points=tuple(points))

    def _window(self, window: WindowFigures) -> WindowFigures:
        tokens, documents = (
            {name: n for name, n in read.items() if self.chooses(name)}
            for read in (window.tokens, window.documents)
        )
        return replace(window, tokens=tokens, documents=documents)

    def _row(self, row: TrendRow, near: Collection[str]) -> bool:
        used = [use.source for use in row.sources if use.documents or use.documents_before]
        chosen = not self.sources or any(map(self.chooses, used))
        return chosen and self._about(row.word, near)

    def _about(self, word: str, near: Collection[str]) -> bool:
        return not self.topic or word == self.topic or word in near

    def _story(self, story: Story, near: Collection[str]) -> bool:
        chosen = not self.sources or any(map(self.chooses, story.sources))
        words = {member.word for member in story.words}
        return chosen and (not self.topic or self.topic in words or not words.isdisjoint(near))

    def _point(self, point: HistoryPoint) -> HistoryPoint:
        if not self.sources:
            return point
        own = tuple(use for use in point.sources if self.chooses(use.source))
        return replace(point, **totals_of(own))


def _day(params: QueryParams, name: str) -> date | None:
    given = params.get(name, "").strip()
    if not given:
        return None
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise KeyedError(
            "filter_day", f"{name} {given[:40]!r}: a day such as 2020-03-31 is accepted."
        ) from None
