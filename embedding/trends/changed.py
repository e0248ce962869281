"""Since when a word is used differently, or is there at all: the verdict that everything asks.

The reports of all windows decide it: the last window that calls the word changed in meaning, or
new. A word that no report calls has no date.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from embedding.trends.rows import TrendReport


@dataclass(frozen=True)
class WordChange:
    """What the reports say of a word.

    kind      `moved`: its meaning changed in the window `since`; `born`: it was new in it; None:
              no window calls it
    q         share of flukes among the findings of that window that are as sure
    unjudged  labels of windows in which no word's use could be compared with the windows before
    windows   how many reports were asked
    """

    word: str
    kind: Literal["moved", "born"] | None
    since: str | None
    q: float | None
    unjudged: tuple[str, ...]
    windows: int


def word_change(word: str, reports: Sequence[TrendReport]) -> WordChange:
    """What the reports of the windows of a store, oldest first, say of a word."""
    compared = [one for one in reports if one.compared_with is not None]
    unjudged = tuple(one.snapshot.label for one in compared if not one.ranked.get("moved"))
    for report in reversed(compared):
        kinds: tuple[Literal["moved", "born"], ...] = ("moved", "born")
        for kind in kinds:
            row = next((one for one in report.significant(kind) if one.word == word), None)
            if row is not None:
                since = row.since or report.snapshot.label
                return WordChange(word, kind, since, row.q, unjudged, len(reports))
    return WordChange(word, None, None, None, unjudged, len(reports))
