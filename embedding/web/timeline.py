"""The windows in a line: what each brought, which stands before and after one, when news was last.

Reports that are known are read; none is computed for it: the page asks for the others behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embedding.kernel.records import SnapshotRef
from embedding.trends.findings import findings_of, last_with_findings
from embedding.trends.rows import TrendReport
from embedding.web.brief import headline

_SHOWN = 12
"""Windows in the line."""


@dataclass(frozen=True)
class TimelineStop:
    """One window: its findings (None: not known yet), its words, whether it is the one shown."""

    id: str
    label: str
    findings: int | None
    words: tuple[str, ...]
    shown: bool


@dataclass(frozen=True)
class WindowTimeline:
    """The line, the neighbours of the window shown, and the last one before it with a finding."""

    line: tuple[TimelineStop, ...]
    previous: TimelineStop | None
    next: TimelineStop | None
    last: TimelineStop | None


ReportOf = Callable[[SnapshotRef], TrendReport | None]
"""The report of a snapshot as it is shown; None while it is not known."""


def timeline(refs: Sequence[SnapshotRef], shown: str, report_of: ReportOf) -> WindowTimeline:
    """The windows of `refs` around the snapshot `shown`; the line ends with the latest that has
    it.
    """
    ids = [ref.id for ref in refs]
    at = ids.index(shown) if shown in ids else len(ids) - 1
    end = min(len(refs), max(at + 1 + _SHOWN // 2, _SHOWN))
    line = [_stop(report_of, ref, shown) for ref in refs[max(0, end - _SHOWN) : end]]
    return WindowTimeline(
        line=tuple(line),
        previous=_stop(report_of, refs[at - 1], shown) if at > 0 else None,
        next=_stop(report_of, refs[at + 1], shown) if 0 <= at < len(refs) - 1 else None,
        last=_last(report_of, refs[: max(0, at)]),
    )


def _last(report_of: ReportOf, before: Sequence[SnapshotRef]) -> TimelineStop | None:
    known = {ref.id: ref for ref in before}
    found = last_with_findings(before, report_of)
    return None if found is None else _stop(report_of, known[found.snapshot.id], "")


def _stop(report_of: ReportOf, ref: SnapshotRef, shown: str) -> TimelineStop:
    report = report_of(ref)
    return TimelineStop(
        id=ref.id,
        label=ref.id.rpartition("-")[0],
        findings=None if report is None else findings_of(report),
        words=() if report is None else tuple(headline(report)),
        shown=ref.id == shown,
    )
