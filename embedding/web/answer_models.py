"""What the page answers programs with: records of `/api/v1`, and of the tools of `yeoron mcp`.

A field that is a record of `embedding.trends` has its meaning there; OpenAPI shows both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from embedding.trends.history import Together, WordHistory
from embedding.trends.rows import Note, StoryWord, TrendRow, WindowFigures, WindowSource


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


@dataclass(frozen=True)
class StoryAnswer:
    """Words that changed together.

    id, first     stay the same while the story goes on; `first` is the window it began in
    said          what happened and since when; who wrote it, and how sure that is
    words         surest first, with what happened to each (`role`)
    q             share of stories this sure that chance alone would give; `significant` ones are
                  findings
    documents     that use its most frequent word; `voices`: at least so many authors, 0: not known
    first_day, last_day   of the documents whose addresses are kept; null where none are
    addresses     typical documents
    page          address of the window's page
    """

    id: str
    first: str
    said: tuple[str, str]
    words: tuple[StoryWord, ...]
    q: float
    significant: bool
    documents: int
    voices: int
    sources: tuple[str, ...]
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
class FindingAnswer:
    """A row of a ranking with what the page says of it.

    said  in sentences, how sure it is last; page: of the word
    row   all its figures
    """

    word: str
    said: tuple[str, ...]
    significant: bool
    q: float
    page: str
    row: TrendRow


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
