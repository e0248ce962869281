"""The findings of a report: how many words, and which window before it had some last.

The reports of all windows decide since when a word is used differently, or is there at all: the
last window that calls it changed in meaning, or new. A word that no report calls has no date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from embedding.kernel.records import SnapshotRef
from embedding.trends.rows import RANKINGS, TrendReport

LOOKED_BACK = 60
"""Windows among which the last one with a finding is looked for."""


def findings_of(report: TrendReport, rankings: Iterable[str] = RANKINGS) -> int:
    """Words that are findings in these rankings, each once."""
    return len({row.word for name in rankings for row in report.significant(name)})


def last_with_findings(
    refs: Sequence[SnapshotRef],
    report_of: Callable[[SnapshotRef], TrendReport | None],
    counted: Callable[[TrendReport], int] = findings_of,
) -> TrendReport | None:
    """The report of the latest of `refs` (oldest first) that has a finding.

    report_of  None where the report of a snapshot is not known: that window is passed over
    counted    findings of a report
    """
    for ref in reversed(refs[-LOOKED_BACK:]):
        report = report_of(ref)
        if report is not None and counted(report):
            return report
    return None


def sureness(q: float) -> str:
    """How sure a finding is: q, or that it is below 0.001."""
    return "q < 0.001" if q < 0.001 else f"q {q:.3f}"


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
