"""Watched words, each in a line: how often, how moved, how sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request

from embedding.trends.history import ShiftFigure, WordHistory
from embedding.trends.rows import RANKINGS, TrendReport
from embedding.web.pages import latest_known
from embedding.web.site import Site


@dataclass(frozen=True)
class WatchLine:
    """series  documents per 1,000 of each window; news: rankings in which it is called clear"""

    word: str
    known: bool
    label: str
    series: tuple[float | None, ...]
    rate: float | None
    rate_before: float | None
    documents: int
    shift: ShiftFigure | None
    news: tuple[str, ...]


def watch_lines(site: Site, request: Request, words: Sequence[str]) -> list[WatchLine] | None:
    """The words in the latest window that was asked for; None where no window was."""
    chosen, listed = site.filter(request), site.reader.listing().refs
    shown = chosen.refs(listed)
    if not listed:
        return []
    if not shown:
        return None
    report, _ = latest_known(site, shown)
    histories = [chosen.history(site.reader.history(word)) for word in words]
    return [_line(history, report) for history in histories if history.points]


def _line(history: WordHistory, report: TrendReport | None) -> WatchLine:
    """The word's last window, against the one before."""
    points = history.points
    last, before = points[-1], points[-2] if len(points) > 1 else None
    news: tuple[str, ...] = ()
    if report is not None and report.snapshot.id == last.snapshot:
        news = tuple(
            name
            for name in RANKINGS
            if any(row.word == history.word and row.significant for row in getattr(report, name))
        )
    return WatchLine(
        word=history.word,
        known=history.known,
        label=last.label,
        series=tuple(point.per_1000_documents for point in points),
        rate=last.per_1000_documents,
        rate_before=before.per_1000_documents if before else None,
        documents=last.documents,
        shift=last.shift_previous,
        news=news,
    )
