"""What is left out of lists of words: those without a topic of their own (하다, 그리고, the).

A finding stays, whatever its word. Sentences are made of the same record as the lists beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from embedding.trends.beside import Beside
from embedding.trends.contrast import ContrastRow, Disagreement
from embedding.trends.history import WordHistory
from embedding.trends.mapping import NeighbourMap
from embedding.trends.rows import RANKINGS, ContextPull, NeighbourRow, TrendReport, TrendRow

BESIDE_SHOWN = 12
"""Words that stand beside a word, as shown."""
_LISTS = (
    *("neighbours_before", "neighbours", "contexts"),
    *("neighbours_first", "neighbours_second"),
)
"""Lists of words that rows have."""
Row = TypeVar("Row", TrendRow, ContrastRow)
Near = TypeVar("Near", NeighbourRow, ContextPull)
_FILE = Path(__file__).parent / "function_words.txt"


@cache
def function_words() -> frozenset[str]:
    """The words of the list that comes with the page."""
    return frozenset(_FILE.read_text(encoding="utf-8").split())


def topical(words: Sequence[Near]) -> tuple[Near, ...]:
    """Those that have a topic."""
    return tuple(one for one in words if one.word not in function_words())


def plain_beside(found: Sequence[Beside]) -> list[Beside]:
    """The first words that stand beside another one and have a topic."""
    return [one for one in found if one.word not in function_words()][:BESIDE_SHOWN]


def plain_report(report: TrendReport) -> TrendReport:
    """A report as the page shows it."""
    rows: dict[str, Any] = {name: plain_rows(getattr(report, name)) for name in RANKINGS}
    return replace(report, **rows)


def plain_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows of a ranking, or words that sources use differently, as the page shows them."""
    found = []
    for row in rows:
        if row.significant or row.word not in function_words():
            lists: dict[str, Any] = {n: topical(getattr(row, n)) for n in _LISTS if hasattr(row, n)}
            found.append(replace(row, **lists))
    return tuple(found)


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
