"""What is left out of lists of words: those without a topic of their own (하다, 그리고, the).

A finding stays, whatever its word. Sentences are made of the same record as the lists beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from embedding.trends.beside import Beside
from embedding.trends.mapping import NeighbourMap
from embedding.trends.rows import RANKINGS, ContextPull, NeighbourRow

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

BESIDE_SHOWN = 12
"""Words that stand beside a word, as shown."""
_LISTS = (
    *("neighbours_before", "neighbours", "contexts"),
    *("neighbours_first", "neighbours_second"),
)
"""Fields that are lists of words."""
_ROWS = (*RANKINGS, "rows", "points", "uses")
"""Fields that hold records with such lists."""
Record = TypeVar("Record", bound="DataclassInstance")
Near = TypeVar("Near", NeighbourRow, ContextPull)
_FILE = Path(__file__).parent / "function_words.txt"


@cache
def function_words() -> frozenset[str]:
    """The words of the list that comes with the page."""
    return frozenset(_FILE.read_text(encoding="utf-8").split())


def topical(words: Sequence[Near]) -> tuple[Near, ...]:
    """Those that have a topic."""
    return tuple(near for near in words if near.word not in function_words())


def plain_beside(words: Sequence[Beside]) -> list[Beside]:
    """The first words that stand beside another one and have a topic."""
    return [near for near in words if near.word not in function_words()][:BESIDE_SHOWN]


def plain(record: Record) -> Record:
    """A report, a history, or what sources use differently, as the page shows it."""
    shown: dict[str, Any] = {}
    for name, value in vars(record).items():
        if name in _LISTS:
            shown[name] = topical(value)
        elif name in _ROWS:
            shown[name] = tuple(plain(row) for row in value if _is_shown(row))
        elif name == "use":
            shown[name] = plain(value)
    return replace(record, **shown)


def _is_shown(row: Any) -> bool:
    """A row of a ranking that is no finding is shown if its word has a topic."""
    return getattr(row, "significant", True) or row.word not in function_words()


def plain_map(neighbour_map: NeighbourMap) -> NeighbourMap:
    """A word's map, as the page shows it."""
    windows = [
        replace(
            window,
            places=tuple(
                point
                for point in window.places
                if point.word == neighbour_map.word or point.word not in function_words()
            ),
        )
        for window in neighbour_map.windows
    ]
    return replace(neighbour_map, windows=tuple(windows))
