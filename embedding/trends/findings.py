"""The findings of a report: how many words, and which window before it had some last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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
