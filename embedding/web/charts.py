"""Charts: large ones as data that charts.js hands to ECharts, small ones as SVG drawn here.

A large chart is a box that holds its figures (`data-chart`), so that a page needs no second answer
and the content policy no exception. Colours are names (`s0` … `s7`) that the style sheet fills for
light and dark. Each window's figures are a text (`tips`), shown under the pointer and the arrow
keys. Without JavaScript the page's tables say the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any

from markupsafe import Markup

from embedding.kernel.calendar import day_number, day_of
from embedding.snapshots.evidence import DayCount
from embedding.trends.history import HistoryPoint, SourceUse, Together, WordHistory
from embedding.trends.mapping import NeighbourMap
from embedding.web.filters import PageFilter
from embedding.web.formats import missing_between, number, rate, short_label, short_word
from embedding.web.text import PageText

COLOURS = 8
LEAST_DIFFERENCE = 0.05
Values = Sequence[float | None]


@dataclass(frozen=True)
class ChartLine:
    """One line of a chart; `low` and `high` draw an interval around it, `dashed` a thin line."""

    name: str
    values: Values
    low: Values = ()
    high: Values = ()
    dashed: bool = False
    colour: int = 0


def lines(
    shown: Sequence[ChartLine],
    labels: Sequence[str],
    tips: Sequence[str],
    *,
    title: str,
    bottom: float | None = 0.0,
    top: float | None = None,
) -> dict[str, object]:
    """A line chart as charts.js takes it; JSON-safe, figures to four digits."""
    return {
        "title": title,
        "labels": list(labels),
        "tips": list(tips),
        "bottom": bottom,
        "top": top,
        "lines": [
            {
                "name": line.name,
                "values": _plain(line.values),
                "low": _plain(line.low),
                "high": _plain(line.high),
                "dashed": line.dashed,
                "colour": line.colour % COLOURS,
            }
            for line in shown
        ],
    }


def over_windows(
    shown: Sequence[ChartLine], windows: Sequence[str], tips: Sequence[str], **options: Any
) -> dict[str, object]:
    """A line chart (`lines`) over windows by their labels; one missing between two is a gap."""
    positions: list[int] = []
    for at, label in enumerate(windows):
        positions += [-1] * (missing_between(windows[at - 1], label) if at else 0)
        positions.append(at)

    def spread(values: Values) -> Values:
        return [None if at < 0 else values[at] for at in positions] if values else ()

    wide = [
        replace(line, values=spread(line.values), low=spread(line.low), high=spread(line.high))
        for line in shown
    ]
    labels = ["" if at < 0 else short_label(windows[at]) for at in positions]
    texts = ["" if at < 0 else tips[at] for at in positions]
    return lines(wide, labels, texts, **options)


def rates_over_windows(
    names: Sequence[str],
    rows: Sequence[Sequence[HistoryPoint | SourceUse | None]],
    labels: Sequence[str],
    t: PageText,
    title: str,
) -> dict[str, object]:
    """Documents per 1,000, a line for each name; rows: of each window what each name has."""
    shown = [
        ChartLine(name, [use.per_1000_documents if use else None for use in column], colour=at)
        for at, (name, column) in enumerate(zip(names, zip(*rows, strict=True), strict=True))
    ]
    tips = []
    for label, row in zip(labels, rows, strict=True):
        known = [(name, use) for name, use in zip(names, row, strict=True) if use is not None]
        parts = [
            f"{name}: {rate(use.per_1000_documents)} ({use.documents:,})" for name, use in known
        ]
        tips.append("\n".join([t.window(label), *parts]))
    return over_windows(shown, labels, tips, title=title)


def chart(data: dict[str, object], name: str, hint: str) -> Markup:
    """The box of a chart; `name` is what a saved picture is called."""
    return _markup(
        '<div class="chart-box"><div class="chart" role="img" tabindex="0" aria-label="{}. {}" '
        'data-name="{}" data-chart="{}"></div></div>',
        *(data["title"], hint, name, json.dumps(data, ensure_ascii=False)),
    )


def _plain(values: Values) -> list[float | None]:
    return [None if value is None else round(value, 4) for value in values]


def sparkline(
    values: Values, title: str, width: int = 112, height: int = 28, level: float | None = None
) -> Markup:
    """A line without axes that ends in a dot; `level` is what its end is compared with."""
    peak = max((v for v in (*values, level) if v is not None), default=0.0) or 1.0
    step = (width - 8) / max(len(values) - 1, 1)
    points = [
        (4 + at * step if len(values) > 1 else width / 2, 3 + (height - 6) * (1 - value / peak))
        for at, value in enumerate(values)
        if value is not None
    ]
    if not points:
        return Markup("")
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"{points[0][0]:.1f},{height - 3} {text} {points[-1][0]:.1f},{height - 3}"
    usual = Markup("")
    if level is not None:
        y = 3 + (height - 6) * (1 - level / peak)
        usual = _markup('<path class="usual" d="M0 {:.1f}H{}"/>', y, width)
    return _markup(
        '<svg class="spark" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
        '<polygon class="area" points="{}"/>{}<polyline class="stroke" points="{}"/>'
        '<circle class="end" cx="{:.1f}" cy="{:.1f}" r="2.8"/></svg>',
        *(width, height, width, height, title, area, usual, text, *points[-1]),
    )


def shift_bar(shift: float, expected: float | None, title: str) -> Markup:
    """A bar from 0 to 1 with a tick where a typical word of like frequency stands."""
    filled = 200 * min(max(shift, 0.0), 1.0)
    tick = Markup("")
    if expected is not None:
        at = 200 * min(max(expected, 0.0), 1.0)
        tick = _markup('<rect class="tick" x="{:.1f}" y="0" width="2" height="12"/>', at - 1)
    return _markup(
        '<svg class="bar" viewBox="0 0 200 12" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><title>{}</title><rect class="rail" y="3" width="200" height="6" rx="3"/>'
        '<rect class="fill" y="3" width="{:.1f}" height="6" rx="3"/>{}</svg>',
        *(title, title, filled, tick),
    )


def differ(shares: Sequence[float]) -> bool:
    """Whether bars of these shares can be told from each other."""
    return max(shares) - min(shares) >= LEAST_DIFFERENCE


def share_bar(share: float, title: str) -> Markup:
    """A plain bar from 0 to 1."""
    return _markup(
        '<svg class="bar share" viewBox="0 0 200 6" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><rect class="rail" width="200" height="6" rx="3"/>'
        '<rect class="fill" width="{:.1f}" height="6" rx="3"/></svg>',
        *(title, 200 * min(max(share, 0.0), 1.0)),
    )


def _markup(template: str, *values: object) -> Markup:
    return Markup(template).format(*values)  # noqa: S704 - templates are literals


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
        datetime.fromisoformat(time_of).replace(tzinfo=None)
        for time_of in (points[0].start, points[-1].end)
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
    own = [count for count in counts if chosen.chooses(count.source)]
    if not own:
        return None
    first, last = day_number(span[0]), day_number(span[1] - timedelta(microseconds=1))
    # The days before the first and after the last noted one may be of a time without addresses.
    noted = [count.day for count in own]
    days = range(max(first, min(noted)), min(last, max(noted)) + 1)
    documents: dict[tuple[str, int], float | None] = {}
    for count in own:
        before, more = documents.get((count.word, count.day), 0.0), count.documents
        whole = None if before is None or more is None else before + more
        documents[count.word, count.day] = whole
    values = [[documents.get((word, day), 0.0) for day in days] for word in words]
    names = [day_of(day) for day in days]
    short = [short_word(word, 24) for word in words]
    shown = [ChartLine(*line, colour=at) for at, line in enumerate(zip(short, values, strict=True))]
    figures = [tuple(row) for row in zip(*values, strict=True)]
    tips = []
    for name, row in zip(names, figures, strict=True):
        parts = [f"{word}: {number(n)}" for word, n in zip(short, row, strict=True)]
        tips.append("\n".join([t.window(name.isoformat()), *parts]))
    labels = [f"{name.month}/{name.day}" for name in names]
    rows = [(name.isoformat(), row) for name, row in zip(names, figures, strict=True)]
    return DaysView(
        chart=lines(shown, labels, tips, title=t("over_days")),
        rows=tuple(reversed(rows)),
        estimated=any(not count.exact for count in own),
    )


def rates_chart(histories: Sequence[WordHistory], t: PageText) -> dict[str, object]:
    """Documents that hold each word, per 1,000 of each window of the first word."""
    points = histories[0].points
    names = [short_word(history.word, 24) for history in histories]
    known = [{point.snapshot: point for point in history.points} for history in histories]
    rows = [[own.get(point.snapshot) for own in known] for point in points]
    return rates_over_windows(names, rows, [point.label for point in points], t, t("per_1000"))


def nearness_chart(points: Sequence[Together], t: PageText) -> dict[str, object]:
    """How near two words stand in each window."""
    values, labels = [point.cosine for point in points], [point.label for point in points]
    shown = [number(value, 2).replace("-", "−") for value in values]
    tips = [f"{t.window(label)}\n{text}" for label, text in zip(labels, shown, strict=True)]
    low = min((value for value in values if value is not None), default=0.0)
    line, bottom = ChartLine(t("nearness"), values), 0.0 if low >= 0 else -1.0
    return over_windows([line], labels, tips, title=line.name, bottom=bottom, top=1.0)


def map_data(shown: NeighbourMap, t: PageText) -> dict[str, object]:
    """What map.js draws: windows with places, and `bounds` (least and greatest x, then y) that hold
    all.
    """
    spots = [(p.x, p.y) for window in shown.windows for p in window.places] or [(0.0, 0.0)]
    xs, ys = ([0.0, *(spot[at] for spot in spots)] for at in (0, 1))
    bounds = [round(value, 3) for value in (min(xs), max(xs), min(ys), max(ys))]
    windows = []
    before: set[str] = set()
    for window in shown.windows:
        windows.append(
            {
                "label": t.window(window.label),
                "kept": f"{window.kept * 100:.0f} %",
                "places": [
                    {
                        "word": short_word(p.word, 24),
                        "x": round(p.x, 3),
                        "y": round(p.y, 3),
                        "similarity": round(p.similarity, 2),
                        "near": p.near,
                        "new": bool(before) and p.near and p.word not in before,
                    }
                    for p in window.places
                ],
            }
        )
        before = {p.word for p in window.places if p.near}
    return {
        "word": short_word(shown.word, 24),
        "title": t("map_title", word=short_word(shown.word, 40)),
        "bounds": bounds,
        "windows": windows,
    }
