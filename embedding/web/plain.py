"""What is left out of lists of words: those without a topic of their own (하다, 그리고, the).

A finding stays, whatever its word. Sentences are made of the same record as the lists beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from embedding.trends.beside import Beside
from embedding.trends.contrast import ContrastRow, Disagreement
from embedding.trends.history import WordHistory
from embedding.trends.mapping import NeighbourMap
from embedding.trends.rows import NeighbourRow, TrendReport, TrendRow

BESIDE_SHOWN = 12
"""Words that stand beside a word, as shown."""
_FILE = Path(__file__).parent / "function_words.txt"


@cache
def function_words() -> frozenset[str]:
    """The words of the list that comes with the page."""
    return frozenset(_FILE.read_text(encoding="utf-8").split())


def topical(words: Sequence[NeighbourRow]) -> tuple[NeighbourRow, ...]:
    """Those that have a topic."""
    return tuple(one for one in words if one.word not in function_words())


def plain_beside(found: Sequence[Beside]) -> list[Beside]:
    """The first words that stand beside another one and have a topic."""
    return [one for one in found if one.word not in function_words()][:BESIDE_SHOWN]


def plain_report(report: TrendReport) -> TrendReport:
    """A report as the page shows it."""
    return replace(
        report,
        moved=_rows(report.moved),
        born=_rows(report.born),
        risen=_rows(report.risen),
        fallen=_rows(report.fallen),
    )


def plain_rows(rows: Sequence[ContrastRow]) -> tuple[ContrastRow, ...]:
    """Words that sources use differently, as the page shows them."""
    return tuple(
        replace(
            row,
            neighbours_first=topical(row.neighbours_first),
            neighbours_second=topical(row.neighbours_second),
        )
        for row in rows
        if row.significant or row.word not in function_words()
    )


def plain_disagreement(found: Disagreement) -> Disagreement:
    """What sources disagree on, as the page shows it."""
    uses = tuple(replace(one, use=plain_rows([one.use])[0]) for one in found.uses)
    return replace(found, uses=uses)


def plain_history(history: WordHistory) -> WordHistory:
    """A word through all windows, as the page shows it."""
    points = [replace(one, neighbours=topical(one.neighbours)) for one in history.points]
    return replace(history, points=tuple(points))


def plain_map(found: NeighbourMap) -> NeighbourMap:
    """A word's map, as the page shows it."""
    windows = [
        replace(
            window,
            places=tuple(
                one
                for one in window.places
                if one.word == found.word or one.word not in function_words()
            ),
        )
        for window in found.windows
    ]
    return replace(found, windows=tuple(windows))


def _rows(rows: Sequence[TrendRow]) -> tuple[TrendRow, ...]:
    return tuple(_row(row) for row in rows if row.significant or row.word not in function_words())


def _row(row: TrendRow) -> TrendRow:
    return replace(
        row,
        neighbours_before=topical(row.neighbours_before),
        neighbours=topical(row.neighbours),
        contexts=tuple(one for one in row.contexts if one.word not in function_words()),
    )
