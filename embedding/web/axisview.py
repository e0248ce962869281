"""A word between two poles, as the page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embedding.kernel.errors import InputError
from embedding.trends.axis import ALL, AxisHistory, AxisPoint
from embedding.web import formats
from embedding.web.charts import ChartLine, over_windows
from embedding.web.config import SENTIMENT
from embedding.web.text import PageText

OVERALL = 7
"""Colour of all sources together; each source has the one of its frequency."""


_POSITIONS = ("axis_positive", "axis_negative", "axis_unsure")
_TONES = ("tone_positive", "tone_negative", "tone_unsure")
"""Texts for a position above 0, below it and for one that may be either: of any axis, and of
sentiment.
"""


def axis_view(
    name: str, history: AxisHistory, t: PageText, order: Sequence[str], windows: Sequence[str]
) -> dict[str, Any]:
    """`chart` (None when the word was used too rarely), `sentence` for the last window, and the
    words of both ends.

    name   of the axis
    order  the sources as the chart of frequencies has them: each keeps its colour
    windows  labels of all windows: one without a position is a gap of the chart
    """
    known = {point.label for point in history.points}
    labels = [*windows] if known else []
    chosen = [point for point in history.points if point.source == ALL]
    return {
        "chart": _chart(history, labels, t, order) if labels else None,
        "sentence": _sentence(name, chosen[-1], t) if chosen else t("axis_none"),
        "positive": " ".join(history.positive),
        "negative": " ".join(history.negative),
        "sources": sorted({point.source for point in history.points} - {ALL}),
    }


def sentence_of(error: InputError, t: PageText) -> str:
    """Why sums of usage say nothing, in the reader's language where that is known."""
    sentence = str(error)
    if "server.usage" in sentence:
        return t("no_usage")
    return t("axis_no_poles") if sentence.startswith(("positive:", "negative:")) else sentence


def _chart(
    history: AxisHistory, labels: list[str], t: PageText, order: Sequence[str]
) -> dict[str, object]:
    at = {(point.label, point.source): point for point in history.points}
    sources = sorted({point.source for point in history.points} - {ALL})
    colours = {name: i for i, name in enumerate(order)}
    shown = [
        ChartLine(
            name,
            [p.position if (p := at.get((label, name))) else None for label in labels],
            dashed=True,
            colour=colours.get(name, 0),
        )
        for name in sources
    ]
    every = [at.get((label, ALL)) for label in labels]
    overall = ChartLine(
        t("all_sources"),
        [one.position if one else None for one in every],
        low=[one.low if one else None for one in every],
        high=[one.high if one else None for one in every],
        colour=OVERALL,
    )
    tips = []
    for label in labels:
        parts = [t.window(label)]
        for name in (ALL, *sources):
            point = at.get((label, name))
            if point is not None:
                source = t("all_sources") if name == ALL else name
                parts.append(f"{source}: {_figure(point)} ({point.mentions:,})")
        tips.append("\n".join(parts))
    title = f"{t('axis')}: {formats.short_word(history.word)}"
    return over_windows([*shown, overall], labels, tips, title=title, bottom=-1.0, top=1.0)


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _figure(point: AxisPoint) -> str:
    if point.low is None or point.high is None:
        return _signed(point.position)
    return f"{_signed(point.position)} ({_signed(point.low)} … {_signed(point.high)})"


def _sentence(name: str, point: AxisPoint, t: PageText) -> str:
    above, below, unsure = _TONES if name == SENTIMENT.name else _POSITIONS
    if point.low is None or point.high is None:
        key = "axis_no_interval"
    else:
        key = above if point.low > 0 else below if point.high < 0 else unsure
    window = t.window(point.label)
    return t(key, window=window, figure=_figure(point))
