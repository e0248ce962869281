"""The windows in a line: what each brought, which stands before and after one, when news was last.

Reports that are known are read; none is computed for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embedding.kernel.records import SnapshotRef
from embedding.trends.findings import findings_of, last_with_findings
from embedding.web.brief import headline
from embedding.web.reader import Reader

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


def timeline(reader: Reader, shown: str) -> WindowTimeline:
    """The windows around the snapshot `shown`; the line ends with the latest that has it."""
    refs = reader.listing().refs
    ids = [ref.id for ref in refs]
    at = ids.index(shown) if shown in ids else len(ids) - 1
    end = min(len(refs), max(at + 1 + _SHOWN // 2, _SHOWN))
    line = [_stop(reader, ref, shown) for ref in refs[max(0, end - _SHOWN) : end]]
    return WindowTimeline(
        line=tuple(line),
        previous=_stop(reader, refs[at - 1], shown) if at > 0 else None,
        next=_stop(reader, refs[at + 1], shown) if 0 <= at < len(refs) - 1 else None,
        last=_last(reader, refs[: max(0, at)]),
    )


def _last(reader: Reader, before: Sequence[SnapshotRef]) -> TimelineStop | None:
    known = {ref.id: ref for ref in before}
    found = last_with_findings(before, lambda ref: reader.known_report(ref.id))
    return None if found is None else _stop(reader, known[found.snapshot.id], "")


def _stop(reader: Reader, ref: SnapshotRef, shown: str) -> TimelineStop:
    report = reader.known_report(ref.id)
    return TimelineStop(
        id=ref.id,
        label=ref.id.rpartition("-")[0],
        findings=None if report is None else findings_of(report),
        words=() if report is None else tuple(headline(report)),
        shown=ref.id == shown,
    )
