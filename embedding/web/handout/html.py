"""The report as one HTML file: pictures inside, nothing loaded, no script."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from embedding.web import formats
from embedding.web.handout.content import Handout, RateChart
from embedding.web.text import page_templates

LINE_COLOURS = ("#0f6b6b", "#c2491d", "#5b4bb0", "#947000")
"""Of the lines of a chart, as on the page."""
_WIDE, _HIGH, _LEFT, _TOP, _BOTTOM = 640, 200, 44, 12, 26


def as_html(handout: Handout) -> str:
    """The file; it opens without a network, and prints on A4."""
    return page_templates().get_template("handout.html").render(handout=handout, picture=picture)


def picture(chart: RateChart) -> Markup:
    """A line chart as SVG; empty where no rate is known."""
    known = [value for _, values in chart.lines for value in values if value is not None]
    if not known:
        return Markup("")
    top = max(known) or 1.0
    lines = [
        _line(values, top, LINE_COLOURS[at % len(LINE_COLOURS)])
        for at, (_, values) in enumerate(chart.lines)
    ]
    figures = "; ".join(
        f"{name} {formats.rate(next((v for v in reversed(values) if v is not None), None))}"
        for name, values in chart.lines
    )
    legend = [
        _markup(
            '<tspan fill="{}">● </tspan><tspan>{}   </tspan>',
            LINE_COLOURS[at % len(LINE_COLOURS)],
            name,
        )
        for at, (name, _) in enumerate(chart.lines)
    ]
    return _markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}: {}">{}{}{}'
        '<text class="legend" x="{}" y="{}">{}</text></svg>',
        *(_WIDE, _HIGH + 28, chart.title, figures),
        _grid(top),
        _labels(chart.labels),
        Markup("").join(lines),
        *(_LEFT, _HIGH + 20, Markup("").join(legend)),
    )


def _grid(top: float) -> Markup:
    rows = []
    for share in (0.0, 0.5, 1.0):
        y = _y(share)
        rows.append(
            _markup(
                '<path class="grid" d="M{} {:.1f}H{}"/><text x="{}" y="{:.1f}" '
                'text-anchor="end">{}</text>',
                *(_LEFT, y, _WIDE - 8, _LEFT - 6, y + 4, formats.rate(top * share)),
            )
        )
    return Markup("").join(rows)


def _labels(labels: Sequence[str]) -> Markup:
    step = max(1, -(-len(labels) // 8))
    shown = [at for at in range(len(labels)) if (len(labels) - 1 - at) % step == 0]
    return Markup("").join(
        _markup(
            '<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>',
            *(_x(at, len(labels)), _HIGH - 6, labels[at]),
        )
        for at in shown
    )


def _line(values: Sequence[float | None], top: float, colour: str) -> Markup:
    """Pieces between windows whose rate is not known, each point with a dot."""
    n, pieces, dots = len(values), [""], []
    for at, value in enumerate(values):
        if value is None:
            pieces.append("")
            continue
        x, y = _x(at, n), _y(value / top)
        pieces[-1] += f"{'L' if pieces[-1] else 'M'}{x:.1f} {y:.1f}"
        dots.append(_markup('<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>', x, y, colour))
    path = _markup('<path class="line" stroke="{}" d="{}"/>', colour, "".join(pieces))
    return path + Markup("").join(dots)


def _x(at: int, n: int) -> float:
    span = _WIDE - _LEFT - 48
    return _LEFT + 20 + (span * at / (n - 1) if n > 1 else span / 2)


def _y(share: float) -> float:
    return _TOP + (_HIGH - _TOP - _BOTTOM) * (1 - share)


def _markup(template: str, *values: object) -> Markup:
    return Markup(template).format(*values)  # noqa: S704 - templates are literals
