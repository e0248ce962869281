"""Small charts as SVG, drawn on the server: no library, no inline style, both themes by CSS.

Colours come from classes (`s0` … `s7`), so that the same drawing serves light and dark. Each
window of a line chart carries its figures in `data-tip`, which app.js shows under the pointer or
the arrow keys, and which `<title>` shows without JavaScript.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

COLOURS = 8
SMALLEST = 1e-6
Values = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    """One line of a chart; `low` and `high` draw a band around it, `dashed` a thin dashed line."""

    name: str
    values: Values
    low: Values = ()
    high: Values = ()
    dashed: bool = False
    colour: int = 0


@dataclass(frozen=True)
class Frame:
    """Where things lie in a drawing, in pixels of its view box."""

    width: int
    height: int
    top: float
    n: int
    left: int = 44
    right: int = 14
    above: int = 12
    below: int = 26

    def x(self, at: int) -> float:
        """Horizontal place of window `at`."""
        span = self.width - self.left - self.right
        return self.left + (span * at / (self.n - 1) if self.n > 1 else span / 2)

    def y(self, value: float) -> float:
        """Vertical place of a value between 0 and `top`."""
        span = self.height - self.above - self.below
        return self.above + span * (1.0 - min(max(value / self.top, 0.0), 1.0))


def line_chart(
    lines: Sequence[Line],
    labels: Sequence[str],
    tips: Sequence[str],
    *,
    title: str,
    top: float | None = None,
) -> Markup:
    """A chart drawn twice, for wide and for narrow screens; CSS shows one of them."""
    wide = _drawing(lines, labels, tips, title=title, top=top, width=760, height=250, kind="wide")
    slim = _drawing(lines, labels, tips, title=title, top=top, width=350, height=220, kind="slim")
    return Markup('<div class="chart-box">') + wide + slim + Markup("</div>")


def _drawing(
    lines: Sequence[Line],
    labels: Sequence[str],
    tips: Sequence[str],
    *,
    title: str,
    top: float | None,
    width: int,
    height: int,
    kind: str,
) -> Markup:
    peak = [v for line in lines for v in (*line.values, *line.high) if v is not None]
    ticks = _ticks(top or max(peak, default=1.0))
    frame = Frame(width, height, ticks[-1], len(labels))
    parts = [
        _tag("title", title),
        *(_gridline(frame, tick, ticks[-1]) for tick in ticks),
        *_dates(frame, labels),
        *(_band(frame, line) for line in lines if line.low),
        *(_path(frame, line) for line in lines),
        *(_hit(frame, at, tip) for at, tip in enumerate(tips)),
    ]
    return _markup(
        '<svg class="chart {}" viewBox="0 0 {} {}" role="img" tabindex="0" aria-label="{}">',
        *(kind, width, height, title),
    ) + _markup("{}</svg>", Markup("").join(parts))


def sparkline(values: Values, title: str, width: int = 112, height: int = 28) -> Markup:
    """A line without axes that ends in a dot."""
    peak = max((v for v in values if v is not None), default=0.0) or 1.0
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
    return _markup(
        '<svg class="spark" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
        '<polygon class="area" points="{}"/><polyline class="stroke" points="{}"/>'
        '<circle class="end" cx="{:.1f}" cy="{:.1f}" r="2.8"/></svg>',
        *(width, height, width, height, title, area, text, *points[-1]),
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


def share_bar(share: float, title: str) -> Markup:
    """A plain bar from 0 to 1."""
    return _markup(
        '<svg class="bar share" viewBox="0 0 200 6" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><rect class="rail" width="200" height="6" rx="3"/>'
        '<rect class="fill" width="{:.1f}" height="6" rx="3"/></svg>',
        *(title, 200 * min(max(share, 0.0), 1.0)),
    )


def _ticks(top: float, about: int = 4) -> list[float]:
    """Round values from 0 to at least `top`."""
    if not math.isfinite(top) or top < SMALLEST:
        top = 1.0
    raw = top / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1.0, 2.0, 2.5, 5.0, 10.0) if s * power >= raw * 0.999)
    return [step * at for at in range(math.ceil(top / step - 1e-9) + 1)]


def _gridline(frame: Frame, value: float, top: float) -> Markup:
    y = frame.y(value)
    digits = 0 if top >= 4 else 1 if top > 1 else 2
    return _markup(
        '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
        '<text class="axis" x="{}" y="{:.1f}" text-anchor="end">{}</text>',
        *(frame.left, frame.width - frame.right, y, y, frame.left - 8, y + 4),
        f"{value:,.{digits}f}",
    )


def _dates(frame: Frame, labels: Sequence[str]) -> list[Markup]:
    """As many dates as fit, the last one always."""
    fit = max(int((frame.width - frame.left - frame.right) / 74), 1)
    step = max(math.ceil((len(labels) - 1) / fit), 1)
    shown = [at for at in range(len(labels)) if (len(labels) - 1 - at) % step == 0]
    out = []
    for at in shown:
        last, first = at == len(labels) - 1, at == 0
        anchor = "middle" if len(labels) == 1 else "end" if last else "start" if first else "middle"
        x = frame.x(at) + (frame.right if last and len(labels) > 1 else 0)
        out.append(
            _markup(
                '<text class="axis" x="{:.1f}" y="{}" text-anchor="{}">{}</text>',
                *(x, frame.height - 6, anchor, labels[at]),
            )
        )
    return out


def _runs(values: Values) -> list[list[tuple[int, float]]]:
    """Stretches without a gap."""
    runs: list[list[tuple[int, float]]] = [[]]
    for at, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((at, value))
    return [run for run in runs if run]


def _path(frame: Frame, line: Line) -> Markup:
    out = Markup("")
    style = f"line s{line.colour % COLOURS}" + (" dashed" if line.dashed else "")
    for run in _runs(line.values):
        places = [(frame.x(at), frame.y(value)) for at, value in run]
        if line.dashed and len(places) == 1:  # a line of one point would not be seen
            (x, y) = places[0]
            places = [(x - 14, y), (x + 8, y)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out += _markup('<polyline class="{}" points="{}"/>', style, points)
        if line.dashed:
            continue
        for at, value in run if frame.n <= 24 or len(run) == 1 else run[-1:]:
            out += _markup(
                '<circle class="dot s{}" cx="{:.1f}" cy="{:.1f}" r="3.2"/>',
                *(line.colour % COLOURS, frame.x(at), frame.y(value)),
            )
    return out


def _band(frame: Frame, line: Line) -> Markup:
    out = Markup("")
    for run in _runs(line.high):
        upper = [(frame.x(at), frame.y(value)) for at, value in run]
        lower = [(frame.x(at), frame.y(line.low[at] or 0.0)) for at, _ in run]
        if len(run) == 1:
            (x, high), (_, low) = upper[0], lower[0]
            upper, lower = [(x - 3, high), (x + 3, high)], [(x - 3, low), (x + 3, low)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*upper, *lower[::-1]))
        out += _markup('<polygon class="band s{}" points="{}"/>', line.colour % COLOURS, points)
    return out


def _hit(frame: Frame, at: int, tip: str) -> Markup:
    """The strip of one window: takes the pointer, holds the figures."""
    half = (frame.width - frame.left - frame.right) / max(frame.n - 1, 1) / 2
    left = max(frame.x(at) - half, frame.left - 6)
    right = min(frame.x(at) + half, frame.width)
    return _markup(
        '<g class="hit" data-tip="{}" data-x="{:.1f}"><title>{}</title>'
        '<line class="cursor" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>'
        '<rect x="{:.1f}" y="0" width="{:.1f}" height="{}"/></g>',
        *(tip, frame.x(at), tip, frame.x(at), frame.x(at)),
        *(frame.above, frame.height - frame.below, left, right - left, frame.height),
    )


def _tag(name: str, text: str) -> Markup:
    return _markup(f"<{name}>{{}}</{name}>", text)


def _markup(template: str, *values: object) -> Markup:
    """Fill a template of this file; every value is escaped."""
    return Markup(template).format(*values)  # noqa: S704 - templates are literals
