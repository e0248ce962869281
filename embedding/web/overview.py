"""Several words over time: documents a day on one chart, and the rate of each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from embedding.kernel.calendar import day_number, day_of
from embedding.snapshots.evidence import DayCount
from embedding.trends.history import WordHistory
from embedding.web import formats
from embedding.web.charts import COLOURS, ChartLine, lines, over_windows
from embedding.web.filters import PageFilter
from embedding.web.text import PageText

MOST_LINES = COLOURS
MOST_DAYS = 400
"""Days of the chart, the latest ones."""


@dataclass(frozen=True)
class DaysView:
    """Documents a day.

    chart      as charts.js takes it
    rows       days, latest first, each with the figure of every word (None: not known)
    estimated  whether some figure is an estimate
    """

    chart: dict[str, object]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    estimated: bool


def span(histories: Sequence[WordHistory], chosen: PageFilter) -> tuple[datetime, datetime]:
    """The days to show, from the first to before the second time, by the clock of the windows."""
    points = histories[0].points
    start, end = (
        datetime.fromisoformat(each).replace(tzinfo=None)
        for each in (points[0].start, points[-1].end)
    )
    if chosen.first is not None:
        start = max(start, datetime.combine(chosen.first, time()))
    if chosen.last is not None:
        end = min(end, datetime.combine(chosen.last, time()) + timedelta(days=1))
    return max(start, end - timedelta(days=MOST_DAYS)), end


def days_view(
    words: Sequence[str],
    counts: Sequence[DayCount],
    span: tuple[datetime, datetime],
    chosen: PageFilter,
    t: PageText,
) -> DaysView | None:
    """None where no document of these words was noted."""
    own = [one for one in counts if chosen.chooses(one.source)]
    if not own:
        return None
    first, last = day_number(span[0]), day_number(span[1] - timedelta(microseconds=1))
    # The days before the first and after the last noted one may be of a time without addresses.
    noted = [one.day for one in own]
    days = range(max(first, min(noted)), min(last, max(noted)) + 1)
    held: dict[tuple[str, int], float | None] = {}
    for one in own:
        before = held.get((one.word, one.day), 0.0)
        unknown = before is None or one.documents is None
        held[one.word, one.day] = None if unknown else (before or 0.0) + (one.documents or 0.0)
    values = [[held.get((word, day), 0.0) for day in days] for word in words]
    names = [day_of(day) for day in days]
    shown = [
        ChartLine(formats.short_word(word, 24), own_values, colour=at)
        for at, (word, own_values) in enumerate(zip(words, values, strict=True))
    ]
    figures = [tuple(row) for row in zip(*values, strict=True)]
    tips = [
        "\n".join([t.window(name.isoformat()), *map(_tip, words, row)])
        for name, row in zip(names, figures, strict=True)
    ]
    labels = [f"{name.month}/{name.day}" for name in names]
    rows = [(name.isoformat(), row) for name, row in zip(names, figures, strict=True)]
    return DaysView(
        chart=lines(shown, labels, tips, title=t("over_days")),
        rows=tuple(reversed(rows)),
        estimated=any(not one.exact for one in own),
    )


def rates_chart(histories: Sequence[WordHistory], t: PageText) -> dict[str, object]:
    """Documents that hold each word, per 1,000 of each window of the first word."""
    points = histories[0].points
    names = [formats.short_word(history.word, 24) for history in histories]
    known = [{point.snapshot: point for point in history.points} for history in histories]
    rows = [[own.get(point.snapshot) for own in known] for point in points]
    shown = [
        ChartLine(name, [one.per_1000_documents if one else None for one in column], colour=at)
        for at, (name, column) in enumerate(zip(names, zip(*rows, strict=True), strict=True))
    ]
    tips = []
    for point, row in zip(points, rows, strict=True):
        parts = [t.window(point.label)]
        for name, one in zip(names, row, strict=True):
            if one is not None:
                parts.append(f"{name}: {formats.rate(one.per_1000_documents)} ({one.documents:,})")
        tips.append("\n".join(parts))
    return over_windows(shown, [point.label for point in points], tips, title=t("per_1000"))


def _tip(word: str, value: float | None) -> str:
    return f"{formats.short_word(word, 24)}: {formats.number(value)}"
