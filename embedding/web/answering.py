"""Answers for programs: what `ask` answers with the page's sentences and addresses, as records of
`/api/v1` and `yeoron mcp`.

A field that is a record of `embedding.trends` has its meaning there; OpenAPI shows both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from embedding.ask.questions import DocumentAddress, FoundStories, WordPair
from embedding.trends.history import Together, WordHistory
from embedding.trends.plain import to_plain
from embedding.trends.rows import Note, Story, WindowFigures, WordChange
from embedding.web.findings import change_sentences, story_sentences
from embedding.web.links import PagePaths
from embedding.web.text import PageText


@dataclass(frozen=True)
class ErrorAnswer:
    """Why there is no answer, in one sentence."""

    error: str


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
class CompareAnswer:
    """Two words through all windows, and how near they stand (cosine; null: not both known)."""

    words: tuple[WordHistory, WordHistory]
    nearness: tuple[Together, ...]
    page: str


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

    def stories(self, answer: FoundStories) -> StoriesAnswer:
        """Stories in sentences, with the days and addresses of their documents."""
        stories = []
        report, chosen = answer
        for story, where in chosen:
            days = (None, None) if where is None else (where.first, where.last)
            first, last = (None if day is None else day.isoformat() for day in days)
            stories.append(
                StoryAnswer(
                    **vars(story),
                    said=story_sentences(story, report, self.t),
                    first_day=first,
                    last_day=last,
                    addresses=() if where is None else DocumentAddress.of(where.documents),
                    page=self.paths.window(report.snapshot.id),
                )
            )
        return StoriesAnswer(report.snapshot, report.compared_with, report.notes, tuple(stories))

    def windows(self, answer: tuple[tuple[WindowFigures, int | None], ...]) -> WindowsAnswer:
        """Windows with the addresses of their pages."""
        return WindowsAnswer(
            tuple(WindowAnswer(read, n, self.paths.window(read.id)) for read, n in answer)
        )

    def compare(self, answer: WordPair) -> CompareAnswer:
        """Two words with the address of their page."""
        first, second = answer.words
        page = self.paths.compare(first.word, second.word)
        return CompareAnswer(answer.words, answer.nearness, page)

    def since(self, answer: WordChange) -> Mapping[str, Any]:
        """When a word changed, in sentences."""
        text, about = change_sentences(answer, self.t)
        return {**to_plain(answer), "text": text, "about": about}


def absolute(paths: PagePaths, origin: str) -> PagePaths:
    """The same addresses with scheme and host."""
    return replace(paths, root=origin.rstrip("/") + paths.root)
