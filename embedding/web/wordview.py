"""A word page's content: charts, the two neighbour lists, its place between two poles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from embedding.ask.config import SENTIMENT
from embedding.kernel.errors import InputError
from embedding.trends.axis import ALL, AxisHistory, AxisPoint
from embedding.trends.history import HistoryPoint, WordHistory
from embedding.trends.rows import NeighbourRow, WordChange
from embedding.web import formats
from embedding.web.charts import ChartLine, over_windows, rates_over_windows
from embedding.web.plain import topical
from embedding.web.text import PageText


@dataclass(frozen=True)
class WordView:
    """What the template shows; frequency: documents per 1,000 of each source."""

    frequency: dict[str, object]
    sources: tuple[str, ...]
    then: HistoryPoint | None
    now: HistoryPoint
    then_lines: tuple[NeighbourRow, ...]
    now_lines: tuple[NeighbourRow, ...]


def word_view(
    history: WordHistory,
    then: str | None,
    now: str | None,
    t: PageText,
    change: WordChange | None = None,
) -> WordView:
    """Charts over all windows, and the neighbours of two of them (snapshot ids; None: choose).

    Without a choice, `now` is the latest window that knows the word and `then` the one before.
    Which words came and went is marked where the word's meaning changed between the two.
    """
    sources = sources_of(history)
    positions = {point.snapshot: at for at, point in enumerate(history.points)}
    now_at = positions.get(now or "", last_with_neighbours(history))
    before = [at for at, point in enumerate(history.points[:now_at]) if point.neighbours]
    then_at = positions.get(then or "", before[-1] if before else -1)
    then_point = history.points[then_at] if then_at >= 0 else None
    now_point = history.points[now_at]
    since = None if change is None or change.kind != "moved" else change.since
    labels = [point.label for point in history.points[then_at + 1 : now_at + 1]]
    marked = then_point is not None and since in labels and then_point.by_use == now_point.by_use
    tables = [{use.source: use for use in point.sources} for point in history.points]
    rows = [[table.get(name) for name in sources] for table in tables]
    windows = [point.label for point in history.points]
    title = f"{t('frequency')}: {formats.short_word(history.word)}"
    return WordView(
        frequency=rates_over_windows(sources, rows, windows, t, title),
        sources=sources,
        then=then_point,
        now=now_point,
        then_lines=_lines(then_point, now_point if marked else None),
        now_lines=_lines(now_point, then_point if marked else None),
    )


def history_sentences(history: WordHistory, t: PageText) -> list[str]:
    """The latest window in sentences: how often the word was used, and whether it changed."""
    last = history.points[-1]
    if not last.read_documents or last.per_1000_documents is None:
        return []
    before = history.points[-2] if len(history.points) > 1 else None
    figures = {
        "window": t.window(last.label),
        "read": formats.number(last.read_documents),
        "documents": formats.number(last.documents),
        "rate": formats.rate(last.per_1000_documents),
    }
    if before is None or before.per_1000_documents is None:
        sentences = [t("read_rate", **figures)]
    else:
        earlier = {
            "rate_before": formats.rate(before.per_1000_documents),
            "earlier_window": t.window(before.label),
        }
        sentences = [t("read_rates", **figures, **earlier)]
    if last.authors is not None:
        sentences.append(t("written_by", n=formats.number(last.authors)))
    if history.parts:
        sentences.append(t("read_as", parts=", ".join(history.parts)))
    # The model remembers the windows before: its figure would contradict the words that are shown.
    figure = None if last.by_use else last.shift_previous
    if figure is not None and before is not None:
        shares = {
            name: f"{100 * value:.0f}"
            for name, value in (("shift", figure.shift), ("low", figure.low), ("high", figure.high))
        }
        sentences.append(t("changed_share", window=t.window(before.label), **shares))
    return sentences


def sources_of(history: WordHistory) -> tuple[str, ...]:
    """The sources of all windows, as charts order and colour them."""
    return tuple(sorted({s.source for point in history.points for s in point.sources}))


def last_with_neighbours(history: WordHistory) -> int:
    """Place of the last window whose neighbours of the word are known; else of the last one."""
    known = [at for at, point in enumerate(history.points) if point.neighbours]
    return known[-1] if known else len(history.points) - 1


def _lines(point: HistoryPoint | None, other: HistoryPoint | None) -> tuple[NeighbourRow, ...]:
    """Those with a topic; `changed` marks those that are not near in the other window."""
    if point is None:
        return ()
    others = {n.word for n in other.neighbours} if other is not None else set()
    return tuple(
        replace(n, changed=bool(others) and n.word not in others) for n in topical(point.neighbours)
    )


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
        [point.position if point else None for point in every],
        low=[point.low if point else None for point in every],
        high=[point.high if point else None for point in every],
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
